/**
 * What was thrown, in its own words and the hint, else `speechless`: no stack, no path of this machine. It may be anything, even what cannot be looked at.
 */
export function wordsOf(error: unknown, speechless: string): string {
  try {
    const { message, hint } = (typeof error === 'string' ? { message: error } : Object(error)) as {
      message?: unknown
      hint?: unknown
    }
    if (typeof message !== 'string' || message.trim() === '') return speechless
    const said = message.replace(OF_SYSTEM, '$1').split(STACK, 1)[0]!
    return typeof hint === 'string' && hint.trim() !== '' ? `${said}; ${hint}` : said
  } catch {
    return speechless
  }
}

/** What the system says (`ENOENT: no such file or directory, open '/srv/…'`) names a path after its comma. */
const OF_SYSTEM = /^(E[A-Z0-9]{2,}: [^,]*),[^]*$/
/** What was thrown on may hold a stack. */
const STACK = /\n\s+at /
