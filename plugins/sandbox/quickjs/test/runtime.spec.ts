import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Tool, Tools } from '@svc/core/contracts'
import { testHost, testContext, toolKit } from '@svc/testing'
import { expect } from 'chai'
import { refusal } from './support/sandbox.ts'
import { site } from './support/site.ts'

const SANDBOX = new URL('..', import.meta.url)
const DICE = new URL('./fixtures/dice/', import.meta.url)

async function openDice() {
  const host = await testHost([DICE, SANDBOX], { config: { sandbox: { quickjs: { workers: 2 } } } })
  return { name: 'roll_dice', tool: host.slot(Tools).get('roll_dice')!, close: () => host.close() }
}

describe('a tool in the runtime quickjs, by the tool kit', () => {
  const cases = toolKit(openDice, {
    good: [{ args: { count: 2 }, expect: ({ structured }) => expect(structured).to.deep.include({ most: 12, calls: 1 }) }],
    bad: [{ args: { count: 13 }, message: /thirteen dice are bad luck/ }, { args: { count: 0 } }, { args: {} }],
    slow: { args: { count: 1_000_000_000 } },
    concurrent: 20,
  })
  for (const testCase of cases) it(testCase.title, testCase.run)
})

/** A plugin of these files in a folder of its own, in a host with the sandbox. */
async function withPlugin(
  code: string,
  check: (tool: (name: string) => Tool, folder: string) => Promise<unknown>,
  { svc = {}, config = {}, main = 'tools.js' }: { svc?: object; config?: object; main?: string } = {}
) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-quickjs-'))
  const manifest = { api: 1, kind: 'tool', runtime: 'quickjs', contributes: { tools: ['*'] }, ...svc }
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'svc-fixture', version: '1.0.0', main, svc: manifest }))
  await writeFile(join(folder, 'tools.js'), code)
  try {
    await using host = await testHost([folder, SANDBOX], {
      config: { sandbox: { quickjs: { allow: ['127.0.0.1'] } }, ...config },
    })
    await check(name => host.slot(Tools).get(name)!, folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

const tool = (body: string, more = '') =>
  `export const tools = { probe: { description: 'Looks what is there.', effects: [], parameters: { type: 'object' }, ${more} async call(args, context) { ${body} } } }`
const answer = async (probe: Tool, args = {}, ctx = testContext()) => (await probe.call(args, ctx)).structured

describe('a plugin with "runtime": "quickjs"', () => {
  it('is read and never imported: its module finds neither process nor require, at its top or in a call', async () => {
    const code = `globalThis.touched = 1; const top = typeof process\n${tool('return { top, now: typeof process, keys: Object.keys(context) }')}`
    await withPlugin(code, async of => {
      expect(await answer(of('probe'))).to.deep.equal({ top: 'undefined', now: 'undefined', keys: ['config', 'requestId'] })
      expect('touched' in globalThis).to.equal(false)
    })
  })

  it('gets its section of the configuration, checked by the schema of its manifest', async () => {
    const config = { type: 'object', properties: { unit: { enum: ['C', 'F'], default: 'C' } }, additionalProperties: false }
    const svc = { section: 'tools.probe', config }
    const check = async (of: (name: string) => Tool) => expect(await answer(of('probe'))).to.deep.equal({ unit: 'C' })
    await withPlugin(tool('return context.config'), check, { svc })
    const { message } = await refusal(withPlugin(tool(''), check, { svc, config: { tools: { probe: { unit: 'K' } } } }))
    expect(message).to.match(/tools\.probe\.unit must be C or F|one of/)
  })

  it('makes what it answers a result: a text, data, a result of its own', async () => {
    await withPlugin(tool('return args.what'), async of => {
      const what = async (value: unknown) => of('probe').call({ what: value as never }, testContext())
      expect(await what('hello')).to.deep.equal({ content: [{ type: 'text', text: 'hello' }] })
      expect(await what([1])).to.deep.equal({ content: [{ type: 'text', text: '[1]' }], structured: [1] })
      const own = { content: [{ type: 'text', text: 'own' }], isError: true }
      expect(await what(own)).to.deep.equal(own)
      const odd = { content: [{ type: 'text', text: 5 }] }
      expect(await what(odd)).to.deep.equal({ content: [{ type: 'text', text: JSON.stringify(odd) }], structured: odd })
    })
  })

  it('keeps nothing from call to call, not even for one caller', async () => {
    const code = `const seen = []\n${tool('seen.push(args.word); globalThis.all = [...(globalThis.all ?? []), args.word]; return { seen, all }')}`
    await withPlugin(code, async of => {
      const who = (id: string) => testContext({ principal: { id, scopes: [] } })
      await answer(of('probe'), { word: 'secret' }, who('a'))
      for (const id of ['a', 'b'])
        expect(await answer(of('probe'), { word: 'mine' }, who(id))).to.deep.equal({ seen: ['mine'], all: ['mine'] })
    })
  })

  it('fetches from the hosts of its manifest, and nowhere else', async () => {
    await using server = await site((request, response) =>
      request.url === '/away'
        ? response.writeHead(302, { location: 'http://localhost/there' }).end()
        : response.writeHead(200, { 'content-type': 'application/json' }).end(`{"path":"${request.url}"}`)
    )
    const code = tool('const r = await fetch(args.url); return { status: r.status, text: await r.text() }')
    await withPlugin(
      code,
      async of => {
        expect(await answer(of('probe'), { url: `${server.url}/here` })).to.deep.equal({ status: 200, text: '{"path":"/here"}' })
        expect(await answer(of('probe'), { url: `${server.url}/away` })).to.deep.include({ status: 302 })
        const { message } = await refusal(answer(of('probe'), { url: `http://localhost:${server.port}/` }))
        expect(message).to.match(/fetch may only reach 127\.0\.0\.1/)
      },
      { svc: { permissions: { network: ['127.0.0.1'], env: ['HOME'] } } }
    )
    await withPlugin(code, async of => {
      const { code: refused, details } = (await refusal(answer(of('probe'), { url: server.url }))) as {
        code?: string
        details?: object
      }
      expect([refused, details]).to.deep.equal(['SANDBOX_BLOCKED', { reason: 'blocked' }])
    })
  })

  it('ends a call that goes too far as every sandboxed script ends', async () => {
    await withPlugin(
      tool('if (args.loop) for (;;) {}\nconst all = []; for (;;) all.push(new Uint8Array(1e6))'),
      async of => {
        const ctx = { ...testContext(), deadline: Date.now() + 60 }
        expect((await refusal(of('probe').call({ loop: true }, ctx))).code).to.equal('TIMEOUT')
        expect((await refusal(of('probe').call({}, testContext()))).code).to.equal('SANDBOX_MEMORY_LIMIT')
        expect((await refusal(of('probe').call({ loop: false }, testContext()))).details).to.deep.equal({
          reason: 'memory_limit',
        })
      },
      { config: { sandbox: { quickjs: { memory_limit: '48M' } } } }
    )
  })

  const startOf = async (code: string, more: object = {}) =>
    refusal(withPlugin(code, async () => expect.fail('it started'), more))

  it('does not start with a module that imports, fails, never ends or exports something else', async () => {
    expect((await startOf('import fs from "node:fs"\nexport const tools = {}')).message).to.match(
      /import of "node:fs" is not allowed/
    )
    expect((await startOf('throw new Error("at its top")')).message).to.match(/at its top \(line 1\)/)
    expect((await startOf('export const tools =')).message).to.match(/SyntaxError/)
    expect((await startOf('export const routes = { a: { path: "/a" } }')).message).to.match(
      /exports "routes"; the runtime quickjs supports only tools/
    )
    expect((await startOf('export const tools = { a: { description: "x" } }')).message).to.match(
      /"tools\.a", which has no function "call"/
    )
    expect((await startOf(tool('').replace('effects: []', 'effects: ["all"]'))).message).to.match(/whose "effects"/)
    expect((await startOf('for (;;) {}', { config: { sandbox: { quickjs: { timeout: 0.05 } } } })).message).to.match(
      /was stopped/
    )
  })

  it('gets no section of another plugin, nor one that others lie in, and adds no command, which Node would import', async () => {
    const claims: [object, RegExp][] = [
      [{ section: 'sandbox.quickjs' }, /its section must be "tools\.<name>", was "sandbox\.quickjs"/],
      [{ section: 'tools' }, /must be "tools\.<name>"/],
      [{ section: 'tools.a.b' }, /must be "tools\.<name>"/],
      [{ contributes: { tools: ['*'], commands: ['evil'] } }, /cannot declare commands/],
    ]
    const config = { type: 'object' }
    for (const [claim, words] of claims) {
      const svc = { ...('section' in claim ? { config } : {}), ...claim }
      expect((await startOf(tool('return context.config'), { svc })).message).to.match(words)
    }
    const other = await mkdtemp(join(tmpdir(), 'svc-other-'))
    try {
      const manifest = { api: 1, kind: 'tool', runtime: 'quickjs', section: 'tools.dice', config }
      await writeFile(join(other, 'package.json'), JSON.stringify({ name: 'svc-other', main: 'a.js', svc: manifest }))
      await writeFile(join(other, 'a.js'), 'export const tools = {}')
      const { message } = await refusal(testHost([DICE, other, SANDBOX]))
      expect(message).to.match(/svc-other.* claims the section "tools\.dice", which belongs to svc-fixture-dice/)
    } finally {
      await rm(other, { recursive: true })
    }
  })

  it('does not start with a module that lies about what it exports, or that says odd things of its tools', async () => {
    const lying = (item: string) => `Array.prototype.push = function (one) { this[this.length] = ${item} }\n${tool('')}`
    for (const item of [
      'null',
      '5',
      '{ slot: "tools" }',
      '{ ...one, name: {} }',
      '{ ...one, methods: "call" }',
      '{ ...one, data: [] }',
    ])
      expect((await startOf(lying(item))).message, item).to.match(/the exports of its module cannot be read/)
    for (const more of ['category: {}', 'title: 5', 'asks: "no"', 'timeoutMs: -5', 'timeoutMs: 1.5'])
      expect((await startOf(tool('', `${more},`))).message, more).to.match(new RegExp(`whose "${more.split(':')[0]}"`))
    await withPlugin(tool('return 1', 'run: {}, other: 1,'), async of => expect(of('probe')).to.not.have.any.keys('run', 'other'))
  })

  it('has the effect "network" where its manifest gives it hosts, whatever it says itself', async () => {
    const svc = { permissions: { network: ['api.example'] } }
    await withPlugin(tool(''), async of => expect(of('probe').effects).to.deep.equal(['network']), { svc })
    await withPlugin(tool(''), async of => expect(of('probe').effects).to.deep.equal([]))
  })

  it('does not wait for a module that is no file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-pipe-'))
    try {
      const svc = { api: 1, kind: 'tool', runtime: 'quickjs' }
      await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'svc-pipe', main: 'pipe.js', svc }))
      execFileSync('mkfifo', [join(folder, 'pipe.js')])
      expect((await refusal(testHost([folder, SANDBOX]))).message).to.match(/its module is not a file/)
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it('adds only what its manifest declares', async () => {
    const { message } = await startOf(tool(''), { svc: { contributes: { tools: ['other'] } } })
    expect(message).to.match(/adds "probe" to tools, which its manifest does not declare/)
  })

  it('does not read a module outside of its package', async () => {
    const outside = await mkdtemp(join(tmpdir(), 'svc-outside-'))
    try {
      await writeFile(join(outside, 'secret.js'), tool('return 1'))
      expect((await startOf('', { main: join('..', outside.split('/').at(-1)!, 'secret.js') })).message).to.match(
        /is outside of the package/
      )
      const linked = await mkdtemp(join(tmpdir(), 'svc-linked-'))
      const svc = { api: 1, kind: 'tool', runtime: 'quickjs' }
      await writeFile(join(linked, 'package.json'), JSON.stringify({ name: 'svc-linked', main: 'link.js', svc }))
      await symlink(join(outside, 'secret.js'), join(linked, 'link.js'))
      expect((await refusal(testHost([linked, SANDBOX]))).message).to.match(/is outside of the package/)
      await rm(linked, { recursive: true })
    } finally {
      await rm(outside, { recursive: true })
    }
  })

  it('needs a plugin that provides its runtime, and says so', async () => {
    const { message } = await refusal(testHost([DICE]))
    expect(message).to.match(/requires the service "runtime\.quickjs", which no loaded plugin provides/)
  })

  it('names its section and its schema only together with a runtime', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-node-'))
    try {
      const svc = { api: 1, kind: 'tool', section: 'tools.a' }
      await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'svc-node', main: 'index.js', svc }))
      await writeFile(join(folder, 'index.js'), 'export default { setup() {} }')
      expect((await refusal(testHost([folder]))).message).to.match(/runtime/)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
