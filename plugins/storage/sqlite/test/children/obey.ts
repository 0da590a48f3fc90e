// Another process on the same file, optionally without root rights: calls the store as requested by IPC, and returns the result.
import { systemContext } from '@svc/core'
import type { Space } from '@svc/core/contracts'
import { createSqliteStore } from '../../src/store.ts'

interface Order {
  readonly id: number
  readonly call: 'open' | 'put' | 'get' | 'probe'
  readonly key?: string
  readonly value?: string
}

const NOBODY = 65_534
const [path, space, rights] = process.argv.slice(2) as [string, string, string]
const ctx = systemContext(new AbortController().signal)
if (rights === 'none' && process.getuid?.() === 0) process.setuid!(NOBODY)
const store = createSqliteStore({ path })

const calls = {
  open: () => store.open(JSON.parse(space) as Space, ctx),
  put: ({ key = '', value = '' }: Order) => store.batch([{ op: 'put', collection: 'notes', key, value }], {}, ctx),
  get: ({ key = '' }: Order) => store.get('notes', key, ctx),
  probe: () => store.probe(ctx),
}

process.on('message', async (order: Order) => {
  try {
    process.send!({ id: order.id, value: await calls[order.call](order) })
  } catch (error) {
    const { code, message, hint } = error as { code: string; message: string; hint: string }
    process.send!({ id: order.id, error: { code, message, hint } })
  }
})
process.send!({ id: 0 })
