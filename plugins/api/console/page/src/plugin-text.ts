// Texts of plugins are only text.
import { visible } from './visible-text.ts'

/** Any value as a short text. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '–'
  if (typeof value === 'string') return visible(value)
  try {
    return visible(JSON.stringify(value))
  } catch {
    return '…' // nested too deeply for a text
  }
}

/** No login and no file: those paths do something when they are opened. */
const CONSOLE_PATH = /^\/console\/(?!oidc\b|files\/|frames\/)[\w./?=&%~:+-]{1,500}$/

/** Whether a text is the address of a page of the console, and nothing else. */
export function isConsolePath(text: string): boolean {
  if (!CONSOLE_PATH.test(text)) return false
  const { origin, pathname, search } = new URL(text, location.origin)
  return origin === location.origin && pathname + search === text
}
