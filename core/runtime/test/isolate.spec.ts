import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  type ConfigTree,
  defineService,
  definePlugin,
  type HookCallers,
  type Manifest,
  type PluginRef,
  type RunningHost,
  startHost,
  systemContext,
} from '@svc/core'
import { isolate, type IsolateOptions } from '@svc/runtime/isolation'
import { expect } from 'chai'
import { wait } from '../../../test/support/wait.ts'
import { Bells } from './support/bells.ts'
import { Clock, type ClockHooks, Gadgets } from './support/clock.ts'
import { createClock } from './support/create-clock.ts'
import { failureOf } from '../../../test/support/failure.ts'
import bells from './support/isolated-plugin.ts'

const ctx = systemContext(new AbortController().signal, 'r7')
const ref = { name: 'bells', module: new URL('./support/isolated-plugin.ts', import.meta.url).href }
const manifest: Manifest = { api: 1, kind: 'tool', contributes: { gadgets: ['bell', 'horn', 'extra-*'] } }
const contracts = [Clock, Gadgets, Bells]
const isolated = async (options: IsolateOptions = {}): Promise<PluginRef> => ({
  use: await isolate(ref, { contracts, ...options }),
  name: 'bells',
  manifest,
})

const MODES: Record<string, () => Promise<PluginRef>> = {
  'in the process of the host': async () => ({ use: bells, name: 'bells', manifest }),
  'in a process of its own': isolated,
}

/** A host with a clock, a horn, a tap of `tolled` and the bells. */
async function hostOf(entry: PluginRef, config: ConfigTree = {}, lines: string[] = []) {
  const hooks: { ring?: HookCallers<ClockHooks>['ring']; horn?: () => void } = {}
  const clock = definePlugin({
    provides: Clock,
    setup(scope) {
      hooks.ring = scope.hooks.ring
      hooks.horn = scope.add(Gadgets, 'horn', { colour: 'brass', press: async times => `honk ${times}`, async *hum() {} })
      scope.tap(Bells.hooks.tolled, async value => `${value}!`)
      return createClock()
    },
  })
  const log = { destination: { write: (line: string) => void lines.push(line) } }
  const host = await startHost({ plugins: [{ use: clock, name: 'clocks' }, entry], config: { bells: config }, log })
  return { host, hooks }
}

/** Resolves when a slot holds a name, or no longer. */
async function until(host: RunningHost, name: string, there: boolean): Promise<void> {
  while (host.slot(Gadgets).has(name) !== there) await wait()
}

for (const [mode, make] of Object.entries(MODES)) {
  describe(`a plugin ${mode}`, () => {
    let made: Awaited<ReturnType<typeof hostOf>>
    let folder: string
    let trace: string
    const lines: string[] = []
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'svc-bells-'))
      trace = join(folder, 'trace')
      made = await hostOf(await make(), { colour: 'blue', trace }, lines)
    })
    after(async () => {
      await made.host.close()
      expect(await readFile(trace, 'utf8')).to.equal('hum ended\nclosed\n')
      await rm(folder, { recursive: true })
    })

    it('adds to a slot, with its data fixed and its calls answered', async () => {
      const bell = made.host.slot(Gadgets).get('bell')!
      expect(bell.colour).to.equal('blue')
      expect(bell.extra).to.equal(undefined)
      expect(await bell.press(2, { ...ctx, principal: { id: 'ann', scopes: [] } })).to.equal('ding 2 ann')
      expect(made.host.slot(Gadgets).owner('bell')).to.equal('bells')
    })

    it('streams, and ends its work when the reader leaves', async () => {
      const heard: string[] = []
      for await (const sound of made.host.slot(Gadgets).get('bell')!.hum(ctx)) if (heard.push(sound) === 100) break
      expect(heard.at(-1)).to.equal('hum 99')
      expect(await readFile(trace, 'utf8')).to.equal('hum ended\n')
    })

    it('provides its service', async () => {
      expect(await Array.fromAsync(made.host.service(Bells).chimes(200, ctx))).to.have.length(200)
    })

    it('answers a hook that it taps', async () => {
      expect(await made.hooks.ring!('wake', ctx)).to.equal('wake up, r7')
      expect(await made.hooks.ring!('sleep', ctx)).to.equal(undefined)
    })

    it('calls the hooks of its own service', async () => {
      expect(await made.host.service(Bells).toll('one', ctx)).to.equal('one!')
    })

    it('sees the slot that it requires, and uses what others added', async () => {
      expect(await made.host.service(Bells).seen(ctx)).to.deep.equal(['horn brass of clocks', 'bell blue of bells'])
      expect(await made.host.service(Bells).press('horn', ctx)).to.equal('honk 3')
    })

    it('adds and removes while it runs', async () => {
      await made.host.service(Bells).grow('extra-1', ctx)
      await until(made.host, 'extra-1', true)
      expect(await made.host.slot(Gadgets).get('extra-1')!.press(1, ctx)).to.equal('grown')
      await made.host.service(Bells).shrink(ctx)
      await until(made.host, 'extra-1', false)
    })

    it('writes to the log of the host under its name', () => {
      expect(lines.map(line => JSON.parse(line))).to.deep.include.members(
        lines.map(line => JSON.parse(line)).filter(line => line.msg === 'the bell is hung')
      )
      expect(lines.find(line => line.includes('the bell is hung')))
        .to.include('"plugin":"bells"')
        .and.include('"colour":"blue"')
    })
  })
}

describe('an isolated plugin', () => {
  it('runs in another process, with no environment but what it was given', async () => {
    process.env.SVC_TEST_SECRET = 'x'
    const { host } = await hostOf(await isolated({ env: { ...process.env, SVC_TEST_SECRET: undefined, BELL: 'given' } }))
    const service = host.service(Bells)
    expect(await service.pid(ctx)).to.not.equal(process.pid)
    expect([await service.env('BELL', ctx), await service.env('SVC_TEST_SECRET', ctx)]).to.deep.equal(['given', undefined])
    await host.close()
    const other = await hostOf(await isolated())
    expect(await other.host.service(Bells).env('SVC_TEST_SECRET', ctx)).to.equal(undefined)
    await other.host.close()
    delete process.env.SVC_TEST_SECRET
  })

  it('follows the changes of a slot that it requires', async () => {
    const { host, hooks } = await hostOf(await isolated())
    hooks.horn!()
    const seen = () => host.service(Bells).seen(ctx)
    while ((await seen()).some(item => item.startsWith('horn')) || (await seen()).length === 0) await wait()
    expect(await seen()).to.deep.equal(['bell red of bells'])
    await host.close()
  })

  it('is named itself where a tap of it fails, whichever plugin it blames', async () => {
    const { host, hooks } = await hostOf(await isolated())
    const failed = await hooks.ring!('blame', ctx).catch((error: unknown) => error)
    expect(failed).to.include({ code: 'BELL_CRACKED', plugin: 'bells' })
    await host.close()
  })

  it('has its configuration checked before it is set up', async () => {
    expect((await failureOf(hostOf(await isolated(), { color: 'blue' }))).message).to.include('bells.color is not a known key')
  })

  it('fails the start with the code of what the host refuses', async () => {
    const entry = await isolated()
    const error = await failureOf(hostOf(entry, { taken: true }))
    expect(error).to.include({ code: 'START_FAILED' })
    expect(error.details.codes).to.deep.equal(['NAME_TAKEN'])
  })

  it('is held to the contracts of the host', async () => {
    const Other = defineService<{ echo(value: unknown, of: typeof ctx): Promise<unknown> }>('clock', {
      api: 1,
      methods: { echo: 'call' },
    })
    expect(await failureOf(isolate(ref, { contracts: [Other] }))).to.include({ code: 'CONTRACT_MISMATCH', plugin: 'bells' })
  })

  it('says why its module cannot be imported', async () => {
    expect(await failureOf(isolate({ name: 'nothing', module: 'file:///no/such/module.ts' }))).to.include({
      code: 'PLUGIN_IMPORT_FAILED',
      plugin: 'nothing',
    })
    const folder = await mkdtemp(join(tmpdir(), 'svc-none-'))
    await writeFile(join(folder, 'none.mjs'), 'export default 1')
    const error = await failureOf(isolate({ name: 'none', module: pathToFileURL(join(folder, 'none.mjs')).href }))
    expect(error).to.include({ code: 'PLUGIN_IMPORT_FAILED', plugin: 'none' })
    await rm(folder, { recursive: true })
  })

  it('fails what waits with PLUGIN_GONE and leaves its slots when its process dies', async () => {
    const gone = Promise.withResolvers<[string, number | undefined]>()
    const { host } = await hostOf(await isolated({ onGone: (how, delay) => gone.resolve([how, delay]) }))
    const bell = host.slot(Gadgets).get('bell')!
    expect(await failureOf(host.service(Bells).die(ctx))).to.include({ code: 'PLUGIN_GONE', plugin: 'bells' })
    expect(await gone.promise).to.deep.equal(['code 9', undefined])
    expect(host.slot(Gadgets).names()).to.deep.equal(['horn'])
    expect(await failureOf(bell.press(1, ctx))).to.include({ code: 'PLUGIN_GONE' })
    expect(await failureOf(host.service(Bells).pid(ctx))).to.include({ code: 'PLUGIN_GONE' })
    await host.close()
  })

  it('comes back after its death where that is wanted, under the same service', async () => {
    const back = Promise.withResolvers<void>()
    const delays: (number | undefined)[] = []
    const { host } = await hostOf(
      await isolated({ respawn: true, onGone: (_, delay) => delays.push(delay), onBack: back.resolve })
    )
    const service = host.service(Bells)
    const first = await service.pid(ctx)
    process.kill(first, 'SIGKILL')
    await back.promise
    expect(await service.pid(ctx)).to.not.equal(first)
    expect(host.slot(Gadgets).names()).to.deep.equal(['horn', 'bell'])
    expect(delays).to.deep.equal([0])
    await host.close()
    expect(delays).to.deep.equal([0])
  })
})
