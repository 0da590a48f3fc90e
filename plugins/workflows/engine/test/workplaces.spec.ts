import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunningHost } from '@svc/core'
import { NodeBus, Peers, type Run, Store, type WorkflowDefinition, WorkflowNodes, Workflows } from '@svc/core/contracts'
import { item, service, testHost } from '@svc/testing'
import { expect } from 'chai'
import { ALONE, ctx, inFolder, node, plugin, until } from './support.ts'

const STORES = ['memory', 'sqlite'] as const

/** Nodes with folders of their own, on one store that says it is shared by machines. */
class Nodes implements AsyncDisposable {
  readonly #folder: string
  readonly #store: Store
  readonly #open = new AsyncDisposableStack()
  readonly undone: string[] = []
  #starts = 0

  private constructor(folder: string, host: RunningHost) {
    this.#folder = folder
    this.#open.use(host)
    const store = host.service(Store)
    this.#store = {
      open: (...given) => store.open(...given),
      get: (...given) => store.get(...given),
      range: (...given) => store.range(...given),
      read: (...given) => store.read(...given),
      batch: (...given) => store.batch(...given),
      acquire: (...given) => store.acquire(...given),
      renew: (...given) => store.renew(...given),
      release: (...given) => store.release(...given),
      releaseHolder: (...given) => store.releaseHolder(...given),
      watch: (...given) => store.watch(...given),
      probe: async given => ({ ...(await store.probe(given)), scope: 'cluster' }),
    }
  }

  static async open(folder: string, kind: (typeof STORES)[number]): Promise<Nodes> {
    const config = kind === 'sqlite' ? { store: { path: join(folder, 'svc.db') } } : {}
    const host = await testHost([plugin(`store-${kind}`)], { config, strict: false })
    const nodes = new Nodes(folder, host)
    await nodes.#watch(host.service(Store))
    return nodes
  }

  /** The timer with which a store watches its file belongs to the first who watches: not to a node, which closes earlier. */
  async #watch(store: Store): Promise<void> {
    const ending = new AbortController()
    this.#open.defer(() => ending.abort())
    const collections = { watched_here: { watched: true } }
    await store.open({ name: 'watched_here', version: 1, collections }, ctx)
    void store
      .watch('watched_here', { ...ctx, signal: ending.signal })
      [Symbol.asyncIterator]()
      .next()
      .catch(() => {})
  }

  async start(name: string, { wait = '10m', shared = false, folder = name } = {}): Promise<RunningHost> {
    const root = this.folder(folder)
    await mkdir(root, { recursive: true })
    this.#starts += 1
    const undo = node(async function* ({ settings }) {
      undone.push(settings.says as string)
      yield { type: 'output', output: null }
    })
    const { undone } = this
    const names = ['bus-store', 'modes', 'queue-store', 'tools-files', 'workflow-nodes', 'workflows']
    const host = await testHost(names.map(plugin), {
      give: [service(Store, this.#store), service(Peers, ALONE), item(WorkflowNodes, 'note', undo)],
      config: { tools: { files: { roots: [root] } }, workflows: { workplace_wait: wait, shared_workplace: shared } },
      nodeId: name,
      clusterId: 'svc',
      worker: `${name}.${this.#starts}.0`,
      strict: false,
    })
    this.#open.use(host)
    await host.service(NodeBus).join({}, ctx)
    return host
  }

  folder(name: string): string {
    return join(this.#folder, name)
  }
  files(name: string): Promise<string[]> {
    return readdir(this.folder(name))
  }

  [Symbol.asyncDispose]() {
    return this.#open.disposeAsync()
  }
}

const tool = (name: string, args: object, more: object = {}) => ({ type: 'tool', name, arguments: args, ...more })

const DRAFT: WorkflowDefinition = {
  name: 'draft',
  nodes: {
    plan: { type: 'note', says: 'plan', next: 'save', compensate: { type: 'note', says: 'undo plan' } },
    save: {
      ...tool('write_file', { path: 'draft.txt', content: 'a draft' }, { next: 'ask' }),
      compensate: tool('delete_file', { path: 'draft.txt' }),
    },
    ask: { type: 'human', message: 'Go on?', next: 'load' },
    load: tool('read_file', { path: 'draft.txt' }),
  },
  result: { text: '${{ nodes.load.content }}' },
}

/** The same without compensations. */
const PLAIN: WorkflowDefinition = {
  ...DRAFT,
  nodes: Object.fromEntries(Object.entries(DRAFT.nodes).map(([name, { compensate: _compensate, ...rest }]) => [name, rest])),
}

/** A run that has written a file, and waits. */
async function drafted(host: RunningHost, workflow = DRAFT): Promise<string> {
  const runs = host.service(Workflows)
  const { id } = await runs.start({ workflow }, ctx)
  await waits(host, id)
  return id
}

const waits = (host: RunningHost, id: string) =>
  until(async () => (await host.service(Workflows).get(id, ctx)).waiting.some(({ step }) => step === 'ask'))
const answer = (host: RunningHost, id: string) => host.service(Workflows).answer(id, { step: 'ask', value: true }, ctx)
const ended = (host: RunningHost, id: string): Promise<Run> => host.service(Workflows).settled(id, 30_000, ctx)

for (const kind of STORES)
  describe(`runs that use the files of a node, in ${kind}`, () => {
    const title = (text: string, test: (nodes: Nodes) => Promise<void>) =>
      it(text, () =>
        inFolder(async folder => {
          await using nodes = await Nodes.open(folder, kind)
          await test(nodes)
        })
      ).timeout(60_000)

    title('continue only there, and show it', async nodes => {
      const [one, two] = [await nodes.start('one'), await nodes.start('two')]
      const id = await drafted(one)
      expect((await two.service(Workflows).get(id, ctx)).affinity).to.equal('one')
      expect((await two.service(Workflows).runs({ limit: 10 }, ctx)).runs[0]).to.include({ id, affinity: 'one' })
      await answer(two, id)
      expect(await ended(two, id)).to.deep.include({ status: 'completed', result: { text: 'a draft' }, affinity: 'one' })
      expect(await nodes.files('two')).to.deep.equal([])
    })

    title('wait for a node that comes back', async nodes => {
      const two = await nodes.start('two')
      const one = await nodes.start('one')
      const id = await drafted(one)
      await one.close()
      await answer(two, id)
      expect((await two.service(Workflows).settled(id, 500, ctx)).status).to.equal('running')
      await nodes.start('one')
      expect(await ended(two, id)).to.deep.include({ status: 'completed', result: { text: 'a draft' } })
    })

    title('fail with WORKPLACE_LOST if it does not, without an answer too, and undo what is not in those files', async nodes => {
      const [one, two] = [await nodes.start('one'), await nodes.start('two', { wait: '100ms' })]
      const id = await drafted(one)
      await one.close()
      const { status, error, affinity } = await ended(two, id)
      expect({ status, code: error?.code, affinity }).to.deep.equal({ status: 'failed', code: 'WORKPLACE_LOST', affinity: 'one' })
      expect(error!.details).to.include({ node: 'one', step: 'save' })
      expect(error!.details!.not_undone).to.deep.equal(['save'])
      expect(nodes.undone).to.deep.equal(['plan', 'undo plan'])
      expect(await nodes.files('two')).to.deep.equal([])
    })

    title('can then be replayed from the step that used them first, but a retry fails the same way', async nodes => {
      const [one, two] = [await nodes.start('one'), await nodes.start('two', { wait: '1ms' })]
      const id = await drafted(one, PLAIN)
      await one.close()
      const { error } = await ended(two, id)
      const runs = two.service(Workflows)
      const retried = await ended(two, (await runs.retry(id, {}, ctx)).id)
      expect([error?.code, retried.error?.code]).to.deep.equal(['WORKPLACE_LOST', 'WORKPLACE_LOST'])
      const { id: replayed } = await runs.replay(id, { from: String(error!.details!.step) }, ctx)
      await waits(two, replayed)
      await answer(two, replayed)
      expect(await ended(two, replayed)).to.deep.include({ status: 'completed', result: { text: 'a draft' }, affinity: 'two' })
      expect(nodes.undone).to.deep.equal(['plan'])
    })

    title('are retried on their node', async nodes => {
      const [one, two] = [await nodes.start('one'), await nodes.start('two')]
      const id = await drafted(one, PLAIN)
      await two.service(Workflows).cancel(id, ctx)
      const { id: retried } = await two.service(Workflows).retry(id, {}, ctx)
      await waits(two, retried)
      await answer(two, retried)
      expect(await ended(two, retried)).to.deep.include({ status: 'completed', affinity: 'one' })
    })

    title('continue anywhere if all nodes have the same files', async nodes => {
      const how = { shared: true, folder: 'all' }
      const [one, two] = [await nodes.start('one', how), await nodes.start('two', how)]
      const id = await drafted(one)
      expect((await two.service(Workflows).get(id, ctx)).affinity).to.equal(undefined)
      await one.close()
      await answer(two, id)
      expect(await ended(two, id)).to.deep.include({ status: 'completed', result: { text: 'a draft' } })
    })

    title('are free when all nodes get the same files', async nodes => {
      const one = await nodes.start('one', { folder: 'all' })
      const id = await drafted(one)
      await one.close()
      const two = await nodes.start('two', { shared: true, folder: 'all' })
      await answer(two, id)
      expect(await ended(two, id)).to.deep.include({ status: 'completed', result: { text: 'a draft' } })
    })

    title('can be cancelled while their node is gone', async nodes => {
      const [one, two] = [await nodes.start('one'), await nodes.start('two')]
      await writeFile(join(nodes.folder('two'), 'draft.txt'), 'not of this run')
      const id = await drafted(one)
      await one.close()
      await two.service(Workflows).cancel(id, ctx)
      expect((await ended(two, id)).error?.code).to.equal('CANCELLED')
      expect(await nodes.files('two')).to.deep.equal(['draft.txt'])
    })
  })
