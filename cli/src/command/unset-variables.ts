import { matchesPattern } from '@svc/core'

/**
 * Returns the declared variables that are not set. Includes patterns that match no variable. Skips names from the configuration
 * (`<providers[].api_key_env>`), optional variables and variables that svc sets itself.
 */
export function unsetIn(
  { env = [], optional_env: optional = [] }: { readonly env?: readonly string[]; readonly optional_env?: readonly string[] },
  all: NodeJS.ProcessEnv = process.env
): string[] {
  const set = Object.keys(all)
  const isNeeded = (name: string) => !name.startsWith('<') && !optional.includes(name) && !SET_BY_SVC.test(name)
  return env.filter(item => isNeeded(item) && !set.some(name => matchesPattern(item, name)))
}

/** svc gives an isolated plugin its own value of these variables, or never passes them. */
const SET_BY_SVC = /^(PATH|HOME|TMPDIR|TZ|LANG|LANGUAGE|LC_ALL|SVC_EGRESS|SVC_ISOLATED|(NODE|LD)_.*)$|^(HTTPS?|ALL|NO)_PROXY$/i

/** A server keeps the variables of its start; a reload brings no others. */
export const UNSET_HINT = 'If the plugin needs it, export it and restart the server (svc serve)'

/** `TIDES_KEY is not set here`. */
export const unsetText = (names: readonly string[], where = 'here'): string =>
  `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} not set ${where}`
