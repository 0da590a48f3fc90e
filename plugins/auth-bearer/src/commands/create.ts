import { systemUse } from '@svc/core'
import { type Command, Store } from '@svc/core/contracts'
import { storeForgets } from '../errors.ts'
import { COMMON, nameOf, readLine, scopesOf, ttlOf, USAGE } from '../line.ts'
import { createTokens } from '../tokens.ts'

const OPTIONS = {
  name: { type: 'string' },
  scope: { type: 'string', multiple: true },
  ttl: { type: 'string', default: '30d' },
  ...COMMON,
} as const

/** `svc tokens create`: prints a new token, once; running servers take it at once. */
const create: Command = async ({ args, signal, host, print, note }) => {
  const { values } = readLine(args, USAGE.create, OPTIONS, 0)
  const named = values.name === undefined ? {} : { name: nameOf(values.name) }
  const wish = { ...named, scopes: scopesOf(values.scope), ttlMs: ttlOf(values.ttl) }
  const use = systemUse(signal, 'svc tokens create')
  const store = (await host()).service(Store)
  const { durable, kind } = await store.probe(use)
  if (!durable) throw storeForgets(kind)
  const tokens = createTokens(store)
  await tokens.open(use)
  const { token, shown } = await tokens.make(wish, use)
  if (values.json) return print(JSON.stringify({ token, ...shown }))
  print(token)
  note(`${shown.id} (${shown.name}): ${shown.scopes.join(' ')}, until ${shown.expires}. The token is shown this once.`)
}

export default create
