/** The theme: light, dark, or as the system has it. */

import { useState } from 'preact/hooks'

const THEMES = ['system', 'light', 'dark'] as const
type Theme = (typeof THEMES)[number]
const THEME_KEY = 'hookline-theme'

/** Changes the theme, and keeps it in the browser. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(readTheme)
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system'
  const change = (): void => {
    try {
      localStorage.setItem(THEME_KEY, next)
    } catch {
      // A browser that keeps nothing: the theme lasts as long as the page.
    }
    setTheme(next)
    applyTheme(next)
  }
  return (
    <button type="button" class="quiet" onClick={change} title={`Theme: ${theme}. Change to ${next}.`}>
      <span class="unseen">Theme: </span>
      <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d={THEME_ICONS[theme]} />
      </svg>
      <span class="wide">{theme}</span>
    </button>
  )
}

const THEME_ICONS: Readonly<Record<Theme, string>> = {
  system: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 1.5v11a5.5 5.5 0 0 1 0-11Z',
  light:
    'M8 4.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7ZM7.3 0h1.4v2.6H7.3Zm0 13.4h1.4V16H7.3ZM0 7.3h2.6v1.4H0Zm13.4 0H16v1.4h-2.6Z',
  dark: 'M6 1.2A7 7 0 1 0 14.8 10 6 6 0 0 1 6 1.2Z',
}

function readTheme(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(THEME_KEY)) ?? 'system'
  } catch {
    return 'system'
  }
}

const prefersDark = matchMedia('(prefers-color-scheme: dark)')

function applyTheme(theme: Theme): void {
  const isDark = theme === 'dark' || (theme === 'system' && prefersDark.matches)
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
}

/** Sets the theme that was chosen, and follows the system where none was. */
export function startTheme(): void {
  applyTheme(readTheme())
  prefersDark.addEventListener('change', () => applyTheme(readTheme()))
}
