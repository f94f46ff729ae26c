"""The engines that take part, each behind `bench.player.Player`."""
