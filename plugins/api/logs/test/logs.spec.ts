import { definePlugin, type Log, systemContext } from '@svc/core'
import { type Json, PeerAnswers, Peers, type RouteReply, Routes } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'

const LOGS = new URL('..', import.meta.url).href
const ctx = systemContext(new AbortController().signal, 'test')

interface Member {
  message(topic: string, message: Json): Promise<unknown>
  answer(topic: string, message: Json): AsyncIterable<Json>
}

/** Workers that reach each other in this process; `silent` ones handle no messages. */
async function openWorkers(count: number, silent = false) {
  const members = new Map<string, Member>()
  const logs: Log[] = []
  const start = async (name: string) => {
    const peers = definePlugin({
      requires: { answers: PeerAnswers },
      provides: Peers,
      setup(scope, { answers }) {
        members.set(name, {
          message: (topic, message) => scope.hooks.message({ topic, message }, ctx),
          answer: (topic, message) => answers.get(topic)!.answer(message, ctx),
        })
        return {
          async broadcast(topic, message) {
            await Promise.all([...members.values()].map(member => member.message(topic, structuredClone(message))))
            if (silent) throw new Error('a worker did not answer')
          },
          metrics: async () => [],
          acquire: async () => true,
          release: async () => {},
          self: async () => name,
          async *ask(worker, topic, message) {
            expect(JSON.stringify(message).length).to.be.below(64 * 1024)
            yield* members.get(worker)!.answer(topic, structuredClone(message))
          },
        }
      },
    })
    const log = { destination: { write() {} } }
    const host = await testHost([LOGS], { strict: false, worker: name, log, give: [{ name: 'test:peers', use: peers }] })
    logs.push(host.log)
    return host
  }
  const hosts = await Promise.all(Array.from({ length: count }, (_, at) => start(`server.${at + 1}`)))
  const read = async (query: Record<string, string>, principal = ctx.principal) => {
    const route = hosts[0]!.slot(Routes).get('logs')!
    const request = { params: {}, query, headers: {}, body: undefined }
    for await (const item of route.stream!(request, { ...ctx, principal }))
      return (item as RouteReply).body as { lines: { message: string; worker: string }[]; complete: boolean }
    throw new Error('no answer')
  }
  return { logs, read, [Symbol.asyncDispose]: async () => void (await Promise.all(hosts.map(host => host.close()))) }
}

describe('the log over HTTP', () => {
  it('has the last lines of all workers in the order of time, also if they are many and long', async () => {
    await using workers = await openWorkers(2)
    for (let at = 0; at < 300; at++) workers.logs[at % 2]!.info({ filler: 'é'.repeat(500) }, `line ${at}`)
    const { lines, complete } = await workers.read({ limit: '200', text: 'LINE ' })
    expect(complete).to.equal(true)
    expect(lines).to.have.lengthOf(200)
    expect(new Set(lines.map(({ worker }) => worker)).size).to.equal(2)
    expect(lines.map(({ message }) => message)).to.include.members(['line 298', 'line 299'])
  })

  it('keeps 1000 lines, and shortens long ones', async () => {
    await using workers = await openWorkers(1)
    for (let at = 0; at < 1_500; at++) workers.logs[0]!.info({}, `line ${at}`)
    const kept = await workers.read({ limit: '1000', text: 'line ' })
    expect([kept.lines[0]!.message, kept.lines.length]).to.deep.equal(['line 500', 1_000])
    workers.logs[0]!.info({}, `long ${'x'.repeat(100_000)}`)
    const [long] = (await workers.read({ text: 'long ' })).lines
    expect(long!.message.length).to.be.below(5_000)
  })

  it('shows callers without the scope admin only lines that name them', async () => {
    await using workers = await openWorkers(1)
    workers.logs[0]!.info({ principal: 'anna', request_id: 'r' }, 'of anna')
    workers.logs[0]!.info({ principal: 'bert', request_id: 'r' }, 'of bert')
    workers.logs[0]!.info({ request_id: 'r' }, 'of none')
    const { lines } = await workers.read({ request_id: 'r' }, { id: 'anna', scopes: ['read'] })
    expect(lines.map(({ message }) => message)).to.deep.equal(['of anna'])
    expect((await workers.read({ request_id: 'r' })).lines).to.have.lengthOf(3)
  })

  it('says when a worker did not answer', async () => {
    await using workers = await openWorkers(2, true)
    expect((await workers.read({})).complete).to.equal(false)
  })
})
