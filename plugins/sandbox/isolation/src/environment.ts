import { matchesPattern } from '@svc/runtime/isolation'

/** What a program needs to know of where it runs. */
const ALWAYS = ['TZ', 'LANG', 'LANGUAGE', 'LC_ALL']
/** What would change how Node itself starts, whatever a manifest says; a proxy of the host's network leads nowhere from within. */
const NEVER = /^(NODE_|LD_|SVC_(ISOLATED|EGRESS)$)|^(HTTPS?|ALL|NO)_PROXY$/i

/** The variables that a plugin gets: those that it declares and that are there. */
export function variablesFor(declared: readonly string[], all: NodeJS.ProcessEnv): Record<string, string> {
  const words = [...ALWAYS, ...declared]
  const given = Object.entries(all).filter(([name]) => !NEVER.test(name) && words.some(word => matchesPattern(word, name)))
  return Object.fromEntries(given) as Record<string, string>
}
