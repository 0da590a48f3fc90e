import type { Log } from '@svc/core'
import type { IsolationFigures, RefusalKind } from '@svc/core/contracts'

/** Names that are told of one plugin; more are counted. */
const TOLD = 100
const LONGEST = 200

/** What one plugin was refused. */
export interface Refusals {
  count(kind: RefusalKind, what: string, why?: string): void
  all(): IsolationFigures['refusals']
}

const VERBS: Readonly<Record<RefusalKind, string>> = {
  env: 'read the variable',
  network: 'reach',
  read: 'read',
  write: 'write to',
  process: 'start',
  hooks: 'join the hook',
}

export function createRefusals(plugin: string, log: Log): Refusals {
  const counts: { [kind in RefusalKind]?: number } = {}
  const told = new Set<string>()
  return {
    all: () => ({ ...counts }),
    count(kind, whole, why = whyOf(whole)) {
      counts[kind] = (counts[kind] ?? 0) + 1
      const what = whole.slice(0, LONGEST)
      const key = `${kind} ${what}`
      if (told.has(key) || told.size > TOLD) return
      told.add(key)
      if (told.size > TOLD)
        log.warn({ of: plugin }, `${plugin} was refused more than ${TOLD} things: what follows is only counted`)
      else log.warn({ of: plugin, kind, what, hint: hintOf(kind, what) }, `${plugin} tried to ${VERBS[kind]} ${what}, ${why}`)
    },
  }
}

/** How the core tells of a socket that found no network, whatever the manifest declares. */
const isBare = (what: string) => what.endsWith(' by a bare socket')
const whyOf = (what: string) => (isBare(what) ? 'which finds no network' : 'which its manifest does not declare')

const hintOf = (kind: RefusalKind, what: string) =>
  kind === 'process'
    ? 'a plugin in a process of its own starts no others; run it in-process if you trust it'
    : isBare(what)
      ? 'the way out is a proxy: fetch, node:http and what honours the variables of a proxy find it'
      : `where it should: "svc": { "permissions": { "${kind}": [${JSON.stringify(what)}] } } in its package.json`
