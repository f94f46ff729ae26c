// Wakes the figures and quizzes of a page; from a file neither modules nor workers may be loaded.
if (location.protocol.startsWith("http")) import("./live-page.mjs");
