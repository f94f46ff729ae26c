// A figure wider than a phone scrolls in its own box, by keyboard too.
document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".cell_output:has(img)")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
});

// The language switch lands on the heading that is on screen, and the choice is kept for the next visit.
document.addEventListener("DOMContentLoaded", () => {
  const remember = (language) => {
    try { localStorage.setItem("book-language", language); } catch { /* storage may be off */ }
  };
  const headingOnScreen = () => {
    const line = window.innerHeight / 3;
    const passed = [...document.querySelectorAll("main section[id]")].filter(
      (section) => section.getBoundingClientRect().top <= line);
    return passed.length > 1 ? passed.at(-1).id : "";    // the page's own title needs no anchor
  };
  for (const link of document.querySelectorAll("a.language-switch")) {
    link.addEventListener("click", () => {
      remember(link.dataset.language);
      link.search = location.search;    // the settings of the figures
      link.hash = headingOnScreen();
    });
  }
});
