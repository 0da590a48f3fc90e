import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import type { Client } from '../support/client.ts'
import { describeWith } from '../support/needs.ts'
import { clientsOf, isReady, startNode } from '../support/nodes.ts'
import { newHome } from '../support/service.ts'
import { until } from '../support/wait.ts'

const NOTES = fileURLToPath(new URL('../support/versioned-notes.ts', import.meta.url))
const [OLD, NEW] = ['1', '2']
const WORDS = 'three short words'

/** An upgrade by expand and contract. Both programs differ in one plugin; nodes of two releases of svc cannot run from one checkout. */
describeWith('postgres', 'a rolling upgrade of a plugin whose data has a new format', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  before(async () => (postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))))
  after(() => stack.disposeAsync())

  const start = async (program: string, home?: string) =>
    startNode({
      config: { plugins: [NOTES], store: { url: postgres.url } },
      few: ['admin-api'],
      env: { TEST_PROGRAM: program },
      ...(home === undefined ? {} : { home }),
    })
  const put = (client: Client, key: string) => client.post('/put-note', { key, text: WORDS })
  const read = async (client: Client, key: string) =>
    ((await client.post('/read-note', { key })).body as { value: unknown }).value

  it('migrates once; the old node reads and chats on, but neither writes old data nor gets new requests', async () => {
    const home = await newHome()
    stack.defer(() => rm(home, { recursive: true, force: true }))
    const old = stack.use(await start(OLD, home))
    const [before] = clientsOf([old]) as [Client]
    expect((await put(before, 'a')).status).to.equal(200)
    const { conversation_id } = (await before.post('/api/v1/chat', { message: 'one' })).body as { conversation_id: string }

    const next = stack.use(await start(NEW))
    const [after] = clientsOf([next]) as [Client]
    expect(await isReady(next.url)).to.equal(true)
    expect(await read(after, 'a')).to.deep.equal({ text: WORDS, words: 3 })
    // what a balancer sees, and what requests get that are on their way
    const shown = await until(
      async () => (await before.get('/health/ready')).body as { status: string },
      ({ status }) => status !== 'ready'
    )
    expect(shown).to.deep.equal({ status: 'node_differs' })
    expect((await before.get('/health/live')).status).to.equal(200)
    expect(await read(before, 'a')).to.deep.equal({ text: WORDS, words: 3 })
    const refused = await put(before, 'b')
    expect(refused.status, refused.text).to.be.above(499)
    expect(await read(after, 'b')).to.equal(null)
    const turn = await before.post('/api/v1/chat', { message: 'two', conversation_id })
    expect(turn.body, turn.text).to.include({ response: 'You said: two (turn 2)' })
    const { nodes } = (await after.get('/api/v1/nodes')).body as {
      nodes: { is_self: boolean; differences: { what: string; name: string; here: unknown; there: unknown }[] }[]
    }
    expect(nodes.find(node => !node.is_self)!.differences).to.deep.include({
      what: 'schema',
      name: 'versioned_notes',
      here: NEW,
      there: OLD,
    })

    expect(await old.stop()).to.equal(0)
    const again = await start(OLD, home).then(
      () => 'it started',
      (error: Error) => error.message
    )
    expect(again).to.include('the space \\"versioned_notes\\" has version 2, but this program supports only version 1')
    const upgraded = stack.use(await start(NEW, home))
    const [last] = clientsOf([upgraded]) as [Client]
    expect((await put(last, 'b')).status).to.equal(200)
    for (const { url } of [next, upgraded]) await until(() => isReady(url), Boolean)
    expect(await read(after, 'b')).to.deep.equal({ text: WORDS, words: 3 })
    const third = await after.post('/api/v1/chat', { message: 'three', conversation_id })
    expect(third.body, third.text).to.include({ response: 'You said: three (turn 3)' })
  }).timeout(120_000)
})
