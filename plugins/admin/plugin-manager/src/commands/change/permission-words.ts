import { homedir } from 'node:os'
import { resolve, sep } from 'node:path'
import type { Permissions } from '../../set.ts'

interface Asked {
  readonly text: string
  /** It is everything of its kind, or nearly. */
  readonly isWide: boolean
}

interface Kind {
  readonly say: (name: string) => string
  readonly isWide: (name: string) => boolean
}

const hasStar = (name: string) => name.includes('*')

/** What is heavy stands before what is light: of a long list people read the first lines. */
const KINDS: Readonly<Record<keyof Permissions, Kind>> = {
  public_routes: { say: name => `answer every client, without a credential: route ${name}`, isWide: hasStar },
  credential_headers: {
    say: name => `see the credentials that clients send in ${name}, the API key and tokens of svc among them`,
    isWide: () => true,
  },
  services: { say: name => `use ${name} of this service, with all that it holds`, isWide: hasStar },
  hooks: { say: name => `join ${name}: see and change what goes through it`, isWide: hasStar },
  write: { say: path => `write ${path}`, isWide: holdsAPerson },
  read: { say: path => `read ${path}`, isWide: holdsAPerson },
  env: { say: name => `read the variable ${name}`, isWide: hasStar },
  // *.example.org is one owner's, *.org is everybody's
  network: { say: host => `connect to ${host}`, isWide: host => /^\*(\.[^.]*)?(:\d+)?$/.test(host) },
}

/** A path with a whole home in it, or all that lies where svc is started. */
function holdsAPerson(path: string): boolean {
  const whole = resolve(path)
  const isAround = (place: string) => place === whole || place.startsWith(whole.endsWith(sep) ? whole : whole + sep)
  return isAround(homedir()) || isAround(process.cwd())
}

/** As many as a person reads. */
const MOST = 20

/** What a plugin may do, in words: what is wide first and marked, and of a long list how many more there are. What may nothing says so. */
export function permissionWords(permissions: Permissions): string[] {
  const all = (Object.keys(KINDS) as (keyof Permissions)[]).flatMap(kind =>
    (permissions[kind] ?? []).map(name => askedOf(kind, name))
  )
  if (all.length === 0)
    return ['nothing beyond its own files, and those of the system that every program reads: no network, no variables']
  const wide = all.filter(one => one.isWide)
  const others = all.filter(one => !one.isWide)
  const rest = others.length - MOST
  return [
    ...wide.map(({ text }) => `WIDE: ${text}`),
    ...others.slice(0, MOST).map(({ text }) => text),
    ...(rest > 0 ? [`and ${rest} more, none of them wide: --json lists all`] : []),
  ]
}

const askedOf = (kind: keyof Permissions, name: string): Asked => ({
  text: KINDS[kind].say(name),
  isWide: KINDS[kind].isWide(name),
})
