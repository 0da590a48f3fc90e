/** What a program needs to know of where it runs. */
const ALWAYS = ['TZ', 'LANG', 'LANGUAGE', 'LC_ALL']
/** What would change how Node itself starts, whatever a manifest says; a proxy of the host's network leads nowhere from within. */
const NEVER = /^(NODE_|LD_|SVC_ISOLATED$)|^(HTTPS?|ALL|NO)_PROXY$/i

/** The variables that a plugin gets: those that it declares and that are there. */
export function variablesFor(declared: readonly string[], all: NodeJS.ProcessEnv): Record<string, string> {
  const words = [...ALWAYS, ...declared].map(one => one.split('*'))
  const given = Object.entries(all).filter(([name]) => !NEVER.test(name) && words.some(parts => fits(name, parts)))
  return Object.fromEntries(given) as Record<string, string>
}

/** Whether a name is these parts with any letters between them. No expression: one of many stars, a stranger's, would take for ever. */
function fits(name: string, [first = '', ...others]: readonly string[]): boolean {
  const last = others.pop()
  if (last === undefined) return name === first
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false
  const end = name.length - last.length
  let at = first.length
  for (const part of others) {
    const found = name.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}
