import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { systemContext } from '@svc/core'
import { type Tool, Tools } from '@svc/core/contracts'
import { testHost, toolKit } from '@svc/testing'
import { expect } from 'chai'

async function open(code: object = {}, quickjs: object = {}) {
  const plugins = [new URL('..', import.meta.url), '@svc/plugin-sandbox-quickjs']
  const config = { tools: { code: { ...code } }, sandbox: { quickjs: { workers: 2, ...quickjs } } }
  const host = await testHost(plugins, { config, from: [import.meta.url] })
  return { name: 'run_javascript', tool: host.slot(Tools).get('run_javascript')!, close: () => host.close() }
}

interface Refusal extends Error {
  readonly code?: string
  readonly details?: object
}
const refusal = (work: Promise<unknown>): Promise<Refusal> =>
  work.then(
    () => expect.fail('it was not refused'),
    (error: Refusal) => error
  )

describe('run_javascript, by the tool kit', () => {
  const cases = toolKit(open, {
    good: [
      {
        args: { code: '[1, 2].map(x => x * input.by)', input: { by: 3 } },
        expect: ({ structured }) => expect(structured).to.deep.equal({ value: [3, 6] }),
      },
      { args: { code: '' + 'await Promise.resolve("text")' } },
    ],
    bad: [
      { args: { code: 'throw new Error("mine")' }, message: /mine \(line 1\)/ },
      { args: { code: '10n' }, message: /bigint/ },
      { args: { code: 'require("fs")' }, message: /require does not exist/ },
      { args: { code: '' } },
      { args: { input: 1 } },
      { args: { code: 'x'.repeat(200_001) } },
    ],
    slow: { args: { code: 'for (;;) {}' } },
    concurrent: 20,
  })
  for (const testCase of cases) it(testCase.title, testCase.run)
})

describe('run_javascript', () => {
  it('answers the value as data and as JSON text, null for undefined, and what the console got', async () => {
    const { tool, close } = await open()
    try {
      const call = (code: string) => tool.call({ code }, systemContext(new AbortController().signal))
      expect(await call('({ a: [1] })')).to.deep.equal({
        content: [{ type: 'text', text: '{"a":[1]}' }],
        structured: { value: { a: [1] } },
      })
      expect(await call('console.log("seen", 1); console.warn("odd"); undefined')).to.deep.equal({
        content: [
          { type: 'text', text: 'null' },
          { type: 'text', text: '[console]\nseen 1\nwarn: odd' },
        ],
        structured: { value: null },
      })
    } finally {
      await close()
    }
  })

  it('tells a time-out as TIMEOUT, and why else it was stopped as the reason', async () => {
    const { tool, close } = await open({ timeout: 5, memory_limit: '40M' })
    try {
      const fails = (code: string, more: object = {}) =>
        refusal(tool.call({ code }, { ...systemContext(new AbortController().signal), ...more }))
      expect((await fails('for (;;) {}', { deadline: Date.now() + 60 })).code).to.equal('TIMEOUT')
      const memory = await fails('const all = []; for (;;) all.push(new Uint8Array(1e6))')
      expect(memory.details).to.deep.equal({ reason: 'memory_limit' })
      const outside = await fails('process.exit(1)')
      expect(outside.details).to.deep.equal({ reason: 'blocked' })
      const own = await fails('null.x')
      expect(own.details).to.deep.equal({ reason: own.message })
      expect(tool.timeoutMs).to.be.above(5000)
    } finally {
      await close()
    }
  })

  it('has the effects of what it is allowed, and says so to the model', async () => {
    const folder = await mkdtemp(`${tmpdir()}/svc-code-`)
    const of = async (config: object): Promise<Pick<Tool, 'effects' | 'description'>> => {
      const { tool, close } = await open(config)
      await close()
      return tool
    }
    try {
      const bare = await of({})
      expect(bare.effects).to.deep.equal(['execute'])
      expect(bare.description).to.match(/no network and no files/)
      const open = await of({ network_access: true, allowed_paths: [folder] })
      expect(open.effects).to.deep.equal(['execute', 'network', 'read', 'write'])
      expect(open.description).to.match(/fetch.*files\.read/)
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it('uses the folders that it is allowed', async () => {
    const folder = await mkdtemp(`${tmpdir()}/svc-code-`)
    const { tool, close } = await open({ allowed_paths: [folder] })
    try {
      const code = 'await files.write("a.txt", "abc"); (await files.read("a.txt")).length'
      expect((await tool.call({ code }, systemContext(new AbortController().signal))).structured).to.deep.equal({ value: 3 })
    } finally {
      await close()
      await rm(folder, { recursive: true })
    }
  })

  it('does not start with a sandbox that cannot be held', async () => {
    const says = async (config: object) => (await refusal(open(config))).message
    expect(await says({ filesystem_readonly: false })).to.match(/filesystem_readonly must be true/)
    expect(await says({ memory_limit: '1M' })).to.match(/memory_limit must be 32M or more/)
    expect(await says({ memory_limit: '1.5G' })).to.match(/memory_limit/)
    expect(await says({ allowed_paths: ['./not-there'] })).to.match(/contains "\.\/not-there", which is not a folder/)
  })
})
