import { expect } from 'chai'
import { open, type Opened } from './support/sandbox.ts'

/** Code that tries to get out, or to take more than its share, by how it has to end. */
const CORPUS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  SANDBOX_BLOCKED: {
    'a constructor chain': 'this.constructor.constructor("return process")().exit()',
    'the constructor of a host function': 'console.log.constructor("return process")().env',
    'the constructor of its input': 'input.constructor.constructor("return process")()',
    'the constructor of an async function': 'await (async () => {}).constructor("return process")()',
    'the constructor of a generator': '(function* () {}).constructor("yield process")().next()',
    'indirect eval': '(0, eval)("process")',
    'eval in a getter': '({ get a() { return eval("require")("fs") } }).a',
    'the error of a host function':
      'try { console.log(...Array(1e9)) } catch (e) { e.constructor.constructor("return process")() }',
    'the stack of an error': 'Error.prepareStackTrace = (e, sites) => sites; const e = new Error(); e.stack; process',
    'the prototype of a host object':
      'Object.getPrototypeOf(console).constructor.constructor("return globalThis")().constructor.constructor("return process")()',
    '__proto__ of the global object': 'globalThis.__proto__.__proto__ = null; globalThis.__proto__ = { a: 1 }; process',
    'a proxy round the global object': 'new Proxy(globalThis, { get(t, k) { return t[k] } }).Function("return process")()',
    'a proxy as a result': 'new Proxy({}, { ownKeys() { return Function("return process")() } })',
    'a getter on the result': '({ get a() { return process } })',
    'toJSON on the result': '({ toJSON() { return require("child_process") } })',
    'toString of what is thrown':
      'throw { name: "x", get message() { return "m" }, toString() { process } , get stack() { process } } , process',
    'a thenable as the result': '({ then(resolve) { resolve(process) } })',
    'a promise that rejects late': 'Promise.resolve().then(() => {}).then(() => process)',
    'Symbol.species':
      'class P extends Promise { static get [Symbol.species]() { return Function("return process")() } }; P.resolve(1).then(x => x)',
    'import()': 'import("node:fs")',
    'import() of a URL': 'import("data:text/javascript,export default 1")',
    'import, static': 'import fs from "node:fs"\nfs',
    'import for its effect': 'import "node:fs"',
    'import in an eval': 'eval("import(\'fs\')")',
    'import in a new function': 'new Function("return import(\'fs\')")()',
    'the modules of QuickJS itself': 'import("std").then(std => std.exit(1))',
    WebAssembly: 'new WebAssembly.Memory({ initial: 1 })',
    'fetch, which is not allowed': 'fetch("http://127.0.0.1/")',
    'files, which are not allowed': 'files.read("/etc/passwd")',
    XMLHttpRequest: 'new XMLHttpRequest()',
  },
  SANDBOX_TIMEOUT: {
    'an endless loop': 'for (;;) {}',
    'a loop that catches its end': 'for (;;) { try { for (;;) {} } catch {} }',
    'a loop in finally': 'try { for (;;) {} } finally { for (;;) {} }',
    'a regular expression that explodes': '/^(a+)+$/.test("a".repeat(40) + "b")',
    'a replace that explodes': '"a".repeat(40).concat("!").replace(/(a|aa|a?)+$/g, "")',
    'promises without end': '(function again() { return Promise.resolve().then(again) })()',
    'an async loop that catches its end': '(async () => { for (;;) { try { for (;;) {} } catch { await null } } })()',
    'a promise that nothing settles': 'new Promise(() => {})',
    'a thenable that never answers': '({ then() {} })',
    'a thenable that always answers with itself': 'const t = { then(resolve) { resolve(t) } }; t',
    'a generator without end': 'function* all() { for (;;) yield 1 }; for (const one of all()) one',
    'a generator that will not return':
      'function* all() { try { yield 1 } finally { for (;;) {} } }; for (const one of all()) break',
    'an iterator without end': '[...{ [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) }].length; for (;;) {}',
    'an async generator without end':
      '(async () => { for await (const one of (async function* () { for (;;) yield 1 })()) one })()',
    'a getter without end on the result': '({ get a() { for (;;) {} } })',
    'toJSON without end': '({ toJSON() { for (;;) {} } })',
    'a proxy without end as the result': 'new Proxy({}, { ownKeys() { for (;;) {} } })',
    'a proxy without end as what is thrown': 'throw new Proxy({}, { get() { for (;;) {} } })',
    'a message without end': 'throw { get message() { for (;;) {} } }',
    'a sort that never ends': '[3, 2, 1].sort(() => { for (;;) {} })',
    'a finalizer and a loop': 'new FinalizationRegistry(() => { for (;;) {} }).register({}, 1); for (;;) ({})',
    'one step of the engine that takes long': 'const big = 3n ** 400000n; for (;;) `${big}`',
  },
  SANDBOX_MEMORY_LIMIT: {
    'a text that doubles': 'let text = "x"; for (;;) text += text + Math.random()',
    'a text that is repeated': '"x".repeat(2 ** 28).split("")',
    'an array that grows': 'const all = []; for (;;) all.push(new Array(1000).fill(1))',
    'one large array': 'new Array(5e7).fill(0)',
    buffers: 'const all = []; for (;;) all.push(new Uint8Array(1e6))',
    'one large buffer': 'new ArrayBuffer(2 ** 31 - 8)',
    'a buffer beyond all bounds': 'new ArrayBuffer(2 ** 40)',
    'objects in a chain': 'let chain = null; for (;;) chain = { chain, more: "abc" + Math.random() }',
    'a map': 'const map = new Map(); for (let i = 0; ; i++) map.set(i, { i })',
    closures: 'let f = () => {}; for (;;) { const g = f; f = () => g }',
    'promises that wait': 'const all = []; for (;;) all.push(new Promise(() => {}).then(() => {}))',
    'a queue of promises that are kept already': 'for (;;) Promise.resolve().then(() => {})',
    'endless recursion': '(function again() { return again() + 1 })()',
    'recursion through toString': 'const o = { toString() { return `${o}` } }; `${o}`',
    'recursion through a proxy': 'let p = {}; p = new Proxy(p, { get: (t, k) => p[k] }); p.a',
    'recursion in the parser': 'eval("(".repeat(50000))',
    'recursion in JSON': 'JSON.parse("[".repeat(100000))',
    'recursion in a regular expression': 'new RegExp("(?:".repeat(50000))',
    'memory in a message': 'throw new Error("x".repeat(1e8))',
    'memory on the console': 'console.log("x".repeat(1e8))',
  },
}

const MS: Readonly<Record<string, number>> = { SANDBOX_BLOCKED: 3000, SANDBOX_TIMEOUT: 60, SANDBOX_MEMORY_LIMIT: 10_000 }

describe('what tries to get out of the sandbox, or takes too much', () => {
  let sandbox: Opened
  before(async () => {
    sandbox = await open({ workers: 1, memory_limit: '32M' })
    await sandbox.run('1')
  })
  after(() => sandbox.close())

  for (const [ending, codes] of Object.entries(CORPUS)) {
    describe(`ends as ${ending}`, () => {
      for (const [title, code] of Object.entries(codes)) {
        it(title, async () => {
          let ticks = 0
          const ticking = setInterval(() => ticks++, 1)
          const failing = sandbox.failure(code, { limits: { timeoutMs: MS[ending]! }, input: { a: 1 } })
          const failure = await failing.finally(() => clearInterval(ticking))
          expect(failure.code, failure.message).to.equal(ending)
          expect(failure.message).to.not.match(/\n|\/(home|work|usr|tmp)\//)
          // what runs out its time must have let the host go on meanwhile
          if (ending === 'SANDBOX_TIMEOUT' && !/nothing will ever settle/.test(failure.message)) expect(ticks).to.be.above(0)
          expect(await sandbox.value('input.a + 1', {}, { a: 1 }), 'the next call').to.equal(2)
        })
      }
    })
  }

  it('does no harm where it changes its own world only', async () => {
    const codes = [
      'Object.prototype.then = function (f) { f(1) }; ({})',
      'Object.defineProperty(Object.prototype, "value", { get() { return 7 } }); 1',
      'delete globalThis.console; delete globalThis.Promise; globalThis.JSON = null; 1',
      'Object.freeze(globalThis); Object.freeze(Object.prototype); 1',
      'globalThis.undefined; Array.prototype[0] = 1; []',
      'String.prototype.toJSON = () => { throw 1 }; 1',
    ]
    for (const code of codes) await sandbox.run(code, { limits: { timeoutMs: 500 } }).catch(() => {})
    expect(await sandbox.value('[typeof {}.then, typeof JSON, [].length]')).to.deep.equal(['undefined', 'object', 0])
  })

  it('shows no memory of the host in uninitialized buffers', async () => {
    const code = 'const all = new Uint8Array(4e6); let sum = 0; for (let i = 0; i < all.length; i += 997) sum += all[i]; sum'
    await sandbox.value('const secret = "SECRET".repeat(500000); secret.length')
    expect(await sandbox.value(code, { timeoutMs: 5000 })).to.equal(0)
  })
})
