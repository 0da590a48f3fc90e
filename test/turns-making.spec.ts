import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { until } from './support/wait.ts'
import { type Client, createClient } from './support/client.ts'
import { type History, saidIn } from './support/history.ts'
import { newHome, type Service, startService } from './support/service.ts'

const support = (name: string) => fileURLToPath(new URL(`./support/${name}`, import.meta.url))
const STREAM = { method: 'POST', path: '/api/v1/chat/stream' }

const historyOf = async (client: Client, id: string) => (await client.get(`/api/v1/conversations/${id}`)).body as History
const activeOf = async (client: Client) =>
  ((await client.get('/api/v1/status')).body as { requests_active: number }).requests_active

describe('turns on a conversation that another of four workers is just making', () => {
  /** A client with one connection, and so with one worker. */
  type Connect = () => Promise<{ readonly client: Client; readonly pid: number }>
  let home: string
  let service: Service
  before(async () => {
    home = await newHome()
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [support('stuck.ts'), support('hold.ts')] }))
    service = await startService({
      home,
      args: ['--workers', '4'],
      env: { SVC_CHAT__START_AFTER_MS: '0', SVC_CHAT__RESUME_S: '0' },
    })
    await service.seen(/"event":"worker_ready"/, 3)
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })
  const connected = (title: string, run: (connect: Connect) => Promise<void>) =>
    it(title, async () => {
      await using ends = new AsyncDisposableStack()
      await run(async () => {
        const client = ends.adopt(createClient(service.url), item => item.close())
        return { client, pid: Number((await client.get('/pid')).text) }
      })
    })
  /** A first turn in one worker, whose id is told already, and turns on it that wait in others. */
  const making = async (connect: Connect, message: string) => {
    const maker = await connect()
    const stream = await maker.client.stream({ ...STREAM, body: { message } })
    const [start] = await stream.until('start')
    const { conversation_id } = start!.data as { conversation_id: string }
    const others = (await Promise.all([1, 2, 3, 4, 5, 6, 7].map(connect))).filter(item => item.pid !== maker.pid)
    const answers = others.map(({ client }, at) => client.post('/api/v1/chat', { message: `next ${at}`, conversation_id }))
    const statuses = Promise.all(answers.map(async answer => (await answer).status))
    const { client } = await connect()
    const all = until(
      () => activeOf(client),
      active => active >= 2 + others.length
    )
    const isWaiting = await Promise.race([
      all.then(
        () => true,
        () => false
      ),
      statuses.then(() => false),
    ])
    expect(isWaiting, 'nobody is answered before it is made').to.equal(true)
    expect(new Set(others.map(other => other.pid)).size).to.equal(3)
    return { maker, stream, statuses, conversation_id, client, waiting: others.length }
  }

  connected('wait for it, and go on', async connect => {
    const { maker, stream, statuses, conversation_id, client, waiting } = await making(connect, '/tool hold {}')
    for (let pid = 0; pid !== maker.pid; ) {
      const found = await connect()
      pid = found.pid
      if (pid === maker.pid) await found.client.post('/release', {})
    }
    expect((await stream.rest()).events.at(-1)?.data).to.include({ status: 'completed' })
    expect(await statuses).to.deep.equal(Array.from({ length: waiting }, () => 200))
    const history = await historyOf(client, conversation_id)
    expect(history.messages).to.have.length(2 * (1 + waiting))
    const [first, ...next] = saidIn(history)
    expect(first).to.equal('/tool hold {}')
    expect(next.toSorted()).to.deep.equal(Array.from({ length: waiting }, (_, at) => `next ${at}`))
  })

  connected('are 404 where it left nothing', async connect => {
    const { stream, statuses, waiting } = await making(connect, '/delay 600000\nnever')
    await stream.leave()
    expect(await statuses).to.deep.equal(Array.from({ length: waiting }, () => 404))
  })

  connected('are 404 where its worker is killed', async connect => {
    const { maker, stream, statuses, waiting } = await making(connect, '/delay 600000\nnever')
    stream.rest().catch(() => {})
    process.kill(maker.pid, 'SIGKILL')
    expect(await statuses).to.deep.equal(Array.from({ length: waiting }, () => 404))
  })
})
