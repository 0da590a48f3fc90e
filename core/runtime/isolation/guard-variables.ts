import process from 'node:process'
import { matchesPattern } from '@svc/core/internal'
import type { Refuse } from './guard.ts'

/** What Node and common libraries look for everywhere, and do without: nobody declares it. */
export const USUAL =
  /^(NODE|NPM|npm|LC|XDG|UNDICI|WS|READABLE_STREAM|JEST|MOCHA|VITEST|WATCH)(_|$)|^(DEBUG|TERM|COLORTERM|CI|HOME|PATH|PWD|SHELL|USER|LOGNAME|LANG|LANGUAGE|TZ|TMPDIR|TMP|TEMP|EDITOR|BABEL_ENV|SYSTEMROOT|APPDATA|LOCALAPPDATA|SVC_EGRESS)$|COLOR|_PROXY$|_proxy$|^no_proxy$/

/** Tells of each variable that is read, not declared, and so not there. */
export function guardVariables(refuse: Refuse, declared: readonly string[]): void {
  const look = (all: NodeJS.ProcessEnv, name: string | symbol) => {
    if (typeof name !== 'string' || name in all || USUAL.test(name)) return
    if (!declared.some(word => matchesPattern(word, name))) refuse('env', name)
  }
  process.env = new Proxy(process.env, {
    get(all, name) {
      look(all, name)
      return Reflect.get(all, name)
    },
    has(all, name) {
      look(all, name)
      return Reflect.has(all, name)
    },
    getOwnPropertyDescriptor(all, name) {
      look(all, name)
      return Reflect.getOwnPropertyDescriptor(all, name)
    },
  })
}
