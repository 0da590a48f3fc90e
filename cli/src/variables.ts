import { matchesPattern } from '@svc/runtime/isolation'

/** Variables that a plugin declares and that are not there, as its manifest has them; a pattern that none fits is one, too. What the configuration names (`<providers[].api_key_env>`) is not looked up. */
export function unsetIn({ env = [] }: { readonly env?: readonly string[] }, all: NodeJS.ProcessEnv = process.env): string[] {
  const set = Object.keys(all)
  return env.filter(one => !one.startsWith('<') && !set.some(name => matchesPattern(one, name)))
}

/** What to do about it. A server keeps the variables that it was started with: a reload brings no others. */
export const UNSET_HINT = 'where the plugin needs it, export it before svc serve is started, and start a server that runs anew'

/** `TIDES_KEY is not set here`. */
export const unsetText = (names: readonly string[]): string =>
  `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} not set here`
