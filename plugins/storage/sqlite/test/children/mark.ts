// Another process on the file: makes a visible system call after each answer, for a trace.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemContext } from '@svc/core'
import { createSqliteStore } from '../../src/store.ts'
import { SPACE } from '../support.ts'

const folder = process.argv[2]!
const ctx = systemContext(new AbortController().signal)
const store = createSqliteStore({ path: join(folder, 'svc.db') })
const put = (key: string) => store.batch([{ op: 'put', collection: 'notes', key, value: key }], {}, ctx)
const acquire = (name: string) => store.acquire(name, { holder: 'h', ttlMs: 60_000, waitMs: 0 }, ctx)
const hit = () => store.count('k', [{ ms: 60_000, limit: 1000 }], ctx)
const mark = (name: string) => mkdirSync(join(folder, name))

await store.open(SPACE, ctx)
mark('opened')
await put('a')
mark('put')
await Promise.all(Array.from({ length: 50 }, (_, at) => put(`k${at}`)))
mark('fifty')
await acquire('one')
mark('first-lease')
await acquire('two')
mark('next-lease')
await hit()
mark('first-hit')
for (let at = 0; at < 50; at++) await hit()
mark('hits')
await store[Symbol.asyncDispose]()
