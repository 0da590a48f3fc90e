import { startPostgres, startTcpProxy, type TcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import type { Client } from '../support/client.ts'
import { describeWith } from '../support/needs.ts'
import { clientsOf, startNode } from '../support/nodes.ts'
import type { Service } from '../support/service.ts'
import { until } from '../support/wait.ts'

/** From a limit of 16 on, a worker keeps permits of a client for its next requests. */
const [STREAMS, REQUESTS] = [32, 48]
/** Nothing changes for this time when all requests have an answer or a permit: a worker asks each other one for up to a second. */
const SETTLED_MS = 2_500
const CHAT = '/api/v1/chat'
const STATUS = '/api/v1/status'
const LONG = { message: '/delay 240000\nlong' }

/** Requests of one client that stay open. */
class OpenRequests {
  readonly #path: string
  readonly #all: { readonly node: string; readonly ending: AbortController; status: number }[] = []

  constructor(path: string) {
    this.#path = path
  }

  /** Sends requests to the nodes in turn. */
  send(nodes: readonly Pick<Service, 'url'>[], count: number): void {
    for (let at = 0; at < count; at++) void this.#open(nodes[at % nodes.length]!.url)
  }

  /** How many were refused, and how many have a permit or wait for one. */
  get refused(): number {
    return this.#all.filter(({ status }) => status === 429).length
  }

  open(node?: string): number {
    return this.#all.filter(one => (one.status === 0 || one.status === 200) && (node === undefined || one.node === node)).length
  }

  /** Resolves when each request has an answer or a permit. A stream answers as soon as it has one. */
  async settled(): Promise<void> {
    if (this.#path.endsWith('/stream'))
      return void (await until(
        async () => this.#all.filter(({ status }) => status === 0).length,
        waiting => waiting === 0
      ))
    let [open, since] = [this.open(), performance.now()]
    await until(
      async () => {
        if (this.open() !== open) [open, since] = [this.open(), performance.now()]
        return performance.now() - since
      },
      ms => ms > SETTLED_MS
    )
  }

  /** Statuses that none may have. */
  get others(): readonly number[] {
    return this.#all.map(({ status }) => status).filter(status => ![0, 200, 429, -1].includes(status))
  }

  end(): void {
    for (const { ending } of this.#all) ending.abort()
  }

  /** The status is 0 until there are headers, and -1 without an answer. */
  async #open(node: string): Promise<void> {
    const one = { node, ending: new AbortController(), status: 0 }
    this.#all.push(one)
    const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(LONG) }
    try {
      const answer = await fetch(`${node}${this.#path}`, { ...request, signal: one.ending.signal })
      one.status = answer.status
      await answer.arrayBuffer()
      if (answer.status === 200) one.status = -1
    } catch {
      one.status = -1
    }
  }
}

describeWith('postgres', 'three nodes with limits at which their workers keep permits', () => {
  const stack = new AsyncDisposableStack()
  let proxy: TcpProxy
  let nodes: readonly [Service, Service, Service]
  let clients: readonly [Client, Client, Client]

  before(async () => {
    const postgres = stack.use(await startPostgres({ settings: { max_connections: 120 } }))
    proxy = stack.use(await startTcpProxy(postgres))
    const env = { SVC_CHAT__START_AFTER_MS: '0', SVC_CHAT__RESUME_S: '0' }
    const server = { max_requests_per_second: 0, max_requests_per_principal: REQUESTS, max_streams_per_principal: STREAMS }
    const start = async (url: string) => stack.use(await startNode({ config: { store: { url }, server }, env, few: [] }))
    nodes = [await start(postgres.url), await start(postgres.url), await start(proxy.url)]
    clients = clientsOf(nodes) as unknown as typeof clients
  })
  after(() => stack.disposeAsync())

  const statusOf = async (client: Client) => (await client.get(STATUS)).status
  /** Sends requests until so many are open, and then more, which are all refused. */
  async function fill(requests: OpenRequests, to: readonly Service[], count: number): Promise<void> {
    do {
      requests.send(to, 2 * count)
      await requests.settled()
    } while (requests.open() < count)
    requests.send(to, 2 * count)
    await requests.settled()
    expect([requests.open(), requests.others]).to.deep.equal([count, []])
  }

  it(`admit exactly ${REQUESTS} of ${10 * REQUESTS} requests of a client`, async () => {
    const requests = new OpenRequests(CHAT)
    stack.defer(() => requests.end())
    requests.send(nodes, 10 * REQUESTS)
    await until(
      async () => requests.refused,
      count => count >= 9 * REQUESTS
    )
    expect([requests.open(), requests.refused, requests.others]).to.deep.equal([REQUESTS, 9 * REQUESTS, []])
    requests.end()
  }).timeout(100_000)

  it('let a client have all requests on one node after those to another one, which keeps some permits, have ended', async () => {
    const [first, second] = [new OpenRequests(CHAT), new OpenRequests(CHAT)]
    for (const requests of [first, second]) stack.defer(() => requests.end())
    await fill(first, nodes.slice(0, 1), REQUESTS)
    first.end()
    await fill(second, nodes.slice(1, 2), REQUESTS)
    second.end()
  }).timeout(100_000)

  it(`admit exactly ${STREAMS} streams, and those of a killed node are free again`, async () => {
    // the workers keep permits of the requests that have ended
    for (const client of clients)
      await until(
        () => statusOf(client),
        status => status === 200
      )
    const first = new OpenRequests(`${CHAT}/stream`)
    stack.defer(() => first.end())
    // the node that is killed has some
    first.send(nodes.slice(0, 1), 3)
    await first.settled()
    // a stream is a request too, so that one of many at once can be refused because of the others that are refused
    first.send(nodes, 10 * STREAMS)
    await first.settled()
    expect(first.open()).to.be.within(1, STREAMS)
    await fill(first, nodes, STREAMS)
    const lost = first.open(nodes[0].url)
    expect(lost).to.be.above(0)
    await nodes[0].kill()
    const again = new OpenRequests(`${CHAT}/stream`)
    stack.defer(() => again.end())
    // until the others know that the node is gone, nothing is free
    await fill(again, nodes.slice(1), lost)
    expect(first.open()).to.equal(STREAMS - lost)
    for (const requests of [first, again]) requests.end()
  }).timeout(100_000)

  it('do not count alone: one that is cut off from the bus refuses requests, and the others go on', async () => {
    const [, other, cut] = clients
    proxy.drop()
    const refused = await until(
      () => cut.get(STATUS),
      ({ text }) => text.includes('cannot count the open requests of its cluster')
    )
    expect([refused.status, refused.headers['retry-after']]).to.deep.equal([503, '5'])
    expect(await statusOf(cut)).to.equal(503)
    expect((await cut.get('/health/live')).status).to.equal(200)
    expect(await statusOf(other)).to.equal(200)
    proxy.heal()
    await until(
      () => statusOf(cut),
      status => status === 200
    )
  }).timeout(100_000)
})
