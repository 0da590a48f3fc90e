import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { open, type Opened, refusal } from './support/sandbox.ts'

const principal = (id: string) => testContext({ principal: { id, scopes: ['tools'] } })

describe('a script in the sandbox', () => {
  let sandbox: Opened
  before(async () => {
    sandbox = await open({ workers: 2, memory_limit: '64M' })
  })
  after(() => sandbox.close())

  it('answers the value of its last expression, whatever statements come before', async () => {
    expect(await sandbox.value('const a = [1, 2, 3]\nlet sum = 0\nfor (const one of a) sum += one\n;({ sum, a })')).to.deep.equal(
      {
        sum: 6,
        a: [1, 2, 3],
      }
    )
    expect(await sandbox.value('if (true) { 5 }')).to.equal(5)
    expect(await sandbox.value('"ä𝕏\\u0000"')).to.equal('ä𝕏\u0000')
  })

  it('awaits a promise, and lets await stand at its top', async () => {
    expect(await sandbox.value('Promise.resolve(1).then(one => one + 1)')).to.equal(2)
    expect(await sandbox.value('const two = await Promise.resolve(2)\ntwo * 2')).to.equal(4)
  })

  it('sees its input, as data that is its own', async () => {
    const input = { list: [1, { deep: null }], text: 'ü' }
    expect(await sandbox.value('input.list.push(2); input', {}, input)).to.deep.equal({ ...input, list: [1, { deep: null }, 2] })
    expect(await sandbox.value('input')).to.equal(null)
  })

  it('answers undefined as null, dates as texts, numbers that are none as null', async () => {
    expect(await sandbox.value('undefined')).to.equal(null)
    expect(await sandbox.value('')).to.equal(null)
    expect(await sandbox.value('[new Date(0), NaN, { gone: undefined }]')).to.deep.equal(['1970-01-01T00:00:00.000Z', null, {}])
  })

  it('says of a value that is no JSON what it is', async () => {
    const says = async (code: string) => (await sandbox.failure(code)).message
    expect(await says('10n')).to.match(/not JSON: it is a bigint/)
    expect(await says('({ a: { b() {} } })')).to.match(/not JSON: b is a function/)
    expect(await says('Symbol("s")')).to.match(/it is a symbol/)
    expect(await says('const a = {}; a.a = a')).to.match(/circular/)
    expect(await says('"x".repeat(1100000)')).to.match(/more than 1048576 characters/)
    expect(await says('let a = []; for (let i = 0; i < 300; i++) a = [a]; a')).to.match(/deeper than 200 levels/)
    expect(await sandbox.value('let a = []; for (let i = 0; i < 190; i++) a = [a]; 1 + JSON.stringify(a).length')).to.equal(383)
    expect(await sandbox.value('["[".repeat(300), "\\"{".repeat(300)].map(one => one.length)')).to.deep.equal([300, 600])
  })

  it('gives its exceptions as SANDBOX_FAILED with their words and line, without a stack', async () => {
    const { code, message, details } = await sandbox.failure('1\nthrow new TypeError("my fault")')
    expect({ code, message, details }).to.deep.equal({
      code: 'SANDBOX_FAILED',
      message: 'TypeError: my fault (line 2)',
      details: { reason: 'TypeError: my fault (line 2)' },
    })
    expect((await sandbox.failure('throw "a text"')).message).to.equal('a text')
    expect((await sandbox.failure('throw { a: 1 }')).message).to.equal('{"a":1}')
    expect((await sandbox.failure('const a = ')).message).to.match(/^SyntaxError: /)
    expect((await sandbox.failure('Promise.reject(new Error("later"))')).message).to.match(/^Error: later/)
    expect((await sandbox.failure('throw new Error("x".repeat(100000))')).message.length).to.be.below(2100)
  })

  it('keeps the first lines of its console, cut', async () => {
    const { console } = await sandbox.run(
      'console.log("a", { b: 1 }, [2]); console.error(new TypeError("no")); console.warn(undefined, 1n)'
    )
    expect(console).to.deep.equal([
      { level: 'log', text: 'a {"b":1} [2]' },
      { level: 'error', text: 'TypeError: no' },
      { level: 'warn', text: 'undefined 1' },
    ])
    const flood = await sandbox.run('for (let i = 0; i < 500; i++) console.log("x".repeat(5000)); 1')
    expect(flood.console.length).to.equal(100)
    expect(flood.console[0]!.text.length).to.equal(2000)
  })

  it('has no levels on its console but the known ones, also for who calls the function behind it', async () => {
    const code = 'const log = Object.getOwnPropertyDescriptor(globalThis, "console").get; log("weird", "a"); log("warn", "b"); 1'
    expect((await sandbox.run(code)).console).to.deep.equal([{ level: 'warn', text: 'b' }])
  })

  it('leaves nothing to the next, of the same tenant or another', async () => {
    const soil = `globalThis.left = 1; var left2 = 2; Object.prototype.left3 = 3; Array.prototype.map = () => "mine"
      JSON.stringify = () => "mine"; Promise.prototype.then = () => "mine"; console.log = () => {}; String.prototype.slice = () => "mine"; 1`
    const look = 'console.log("there"); [typeof left, typeof left2, typeof {}.left3, [1].map(x => x + 1), "abc".slice(1)]'
    for (const tenant of ['a', 'a', 'b', 'c', 'd', 'e', 'f', 'a']) {
      await sandbox.run(soil, { tenant })
      const { value, console } = await sandbox.run(look, { tenant })
      expect(value).to.deep.equal(['undefined', 'undefined', 'undefined', [2], 'bc'])
      expect(console).to.deep.equal([{ level: 'log', text: 'there' }])
    }
  })

  it('knows the language and no more: no process, timers, modules, shared memory of others', async () => {
    const names = 'Object.getOwnPropertyNames(globalThis).filter(name => /^[a-z]/.test(name)).sort()'
    expect(await sandbox.value(names)).to.deep.equal(
      [
        'console',
        'decodeURI',
        'decodeURIComponent',
        'encodeURI',
        'encodeURIComponent',
        'escape',
        'eval',
        'globalThis',
        'input',
      ].concat(['isFinite', 'isNaN', 'parseFloat', 'parseInt', 'undefined', 'unescape'])
    )
  })

  it('is ended by an abort, at once, and the next one runs', async () => {
    const controller = new AbortController()
    const ended = refusal(sandbox.run('for (;;) {}', {}, testContext({ signal: controller.signal })))
    setImmediate(() => controller.abort(new Error('nobody waits any more')))
    expect((await ended).message).to.equal('nobody waits any more')
    expect((await refusal(sandbox.run('1', {}, testContext({ signal: controller.signal })))).message).to.match(/nobody waits/)
    expect(await sandbox.value('1')).to.equal(1)
  })

  it('ends with the deadline of its caller', async () => {
    const { code } = await refusal(sandbox.run('for (;;) {}', {}, { ...testContext(), deadline: Date.now() + 50 }))
    expect(code).to.equal('SANDBOX_TIMEOUT')
  })

  it('serves many principals at once, each in turn', async () => {
    const all = Array.from({ length: 24 }, (_, at) => sandbox.run(`${at} * 2`, {}, principal(`p${at % 6}`)))
    expect((await Promise.all(all)).map(item => item.value)).to.deep.equal(all.map((_, at) => at * 2))
  })

  it('refuses who has too many waiting', async () => {
    const greedy = Array.from({ length: 80 }, () =>
      sandbox.run('1', {}, principal('greedy')).then(String, (error: { code: string }) => error.code)
    )
    const ended = await Promise.all(greedy)
    expect(ended.filter(item => item === 'WORK_BUSY').length).to.be.within(1, 16)
    expect(ended.filter(item => item !== 'WORK_BUSY').length).to.be.at.least(64)
  })

  it('refuses limits that cannot be held, code and input that are too large', async () => {
    const refused = async (more: object, code = '1') => (await sandbox.failure(code, more)).code
    expect(await refused({ limits: { timeoutMs: 0 } })).to.equal('INVALID_VALUE')
    expect(await refused({ limits: { memoryBytes: 1_000_000 } })).to.equal('INVALID_VALUE')
    expect(await refused({ input: 'x'.repeat(1_100_000) })).to.equal('INVALID_VALUE')
    expect(await refused({}, `1${' '.repeat(1_100_000)}`)).to.equal('INVALID_VALUE')
  })

  it('takes at most what the sandbox is configured for, whatever is asked', async () => {
    const { code } = await sandbox.failure('new Uint8Array(100e6).length', { limits: { memoryBytes: 2 ** 31, timeoutMs: 1e9 } })
    expect(code).to.equal('SANDBOX_MEMORY_LIMIT')
  })
})

describe('the sandbox', () => {
  it('starts nothing before its first script, and stops all with the host', async () => {
    const sandbox = await open({ workers: 2 })
    expect(process.getActiveResourcesInfo()).to.not.include('MessagePort')
    const running = refusal(sandbox.run('for (;;) {}'))
    const waiting = [refusal(sandbox.run('for (;;) {}')), refusal(sandbox.run('1')), refusal(sandbox.run('2'))]
    await sandbox.close()
    for (const item of [running, ...waiting]) expect((await item).code).to.match(/^(SANDBOX_CLOSED|WORK_CLOSED)$/)
  })

  it('keeps its thread where the engine itself ends what takes too long or too much, and for the next tenant', async () => {
    const sandbox = await open({ workers: 1, memory_limit: '32M' })
    let started = 0
    const note = () => started++
    process.on('worker', note)
    const limits = { timeoutMs: 60 }
    for (const code of [
      'for (;;) {}',
      '/^(a+)+$/.test("a".repeat(40) + "b")',
      'new Promise(() => {})',
      'process',
      '(function f() { f() })()',
    ])
      await sandbox.failure(code, { limits, tenant: code })
    for (let again = 0; again < 2; again++) await sandbox.failure('const all = []; for (;;) all.push(new Uint8Array(1e5))')
    process.off('worker', note)
    await sandbox.close()
    expect(started).to.equal(1)
  })

  it('takes the least and the most memory, and refuses a configuration that cannot be held', async () => {
    for (const memory_limit of ['32M', '2G']) {
      const sandbox = await open({ memory_limit })
      expect(await sandbox.value('new Uint8Array(1e6).length')).to.equal(1e6)
      await sandbox.close()
    }
    for (const memory_limit of ['31M', '2049M', '3G'])
      expect((await refusal(open({ memory_limit }))).message).to.contain(`must be from 32M to 2G, was "${memory_limit}"`)
  })
})
