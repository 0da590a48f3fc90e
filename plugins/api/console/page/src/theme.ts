import { createKept } from './value.ts'

/** `auto` follows the system. */
export const theme = createKept('svc-theme', 'auto')

const NEXT: Readonly<Record<string, string>> = { auto: 'light', light: 'dark', dark: 'auto' }

export const nextTheme = (): void => theme.set(NEXT[theme.get()] ?? 'auto')

/** Keeps the attribute that the style sheet reads. */
export function applyTheme(): void {
  const apply = () => {
    const chosen = theme.get()
    if (chosen === 'auto') document.documentElement.removeAttribute('data-theme')
    else document.documentElement.setAttribute('data-theme', chosen)
  }
  theme.subscribe(apply)
  apply()
}
