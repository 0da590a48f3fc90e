import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { refusal, serveWork } from '@svc/worker-pool/child'

const kept: unknown[] = []

/** What the workers of the tests can do. */
export const work = serveWork({
  add: ({ a, b }: { a: number; b: number }) => a + b,
  later: async (value: string) => value,
  match: ({ pattern, text }: { pattern: string; text: string }) => new RegExp(pattern).test(text),
  spin: () => {
    for (;;);
  },
  fill: () => {
    for (;;) kept.push(Array.from({ length: 1000 }, (_, at) => ({ at })))
  },
  heap: () => JSON.stringify('1'.repeat(100_000_000).match(/1/g)).length,
  recurse: (depth: number): number => 1 + work.recurse(depth + 1),
  refuse: () => {
    throw refusal('NO_SUCH_THING', 'there is none', { details: { thing: 7 }, hint: 'take another' })
  },
  fail: () => {
    throw new TypeError('x is no function')
  },
  stray: () => {
    throw new Error("Cannot find module '/srv/my svc/node_modules/x.js'\nRequire stack:\n- /srv/my svc/y.js")
  },
  leak: () => () => 1,
  exit: () => process.exit(3),
  pid: () => process.pid,
  code: () => Reflect.construct((() => {}).constructor, ['return 1']) as unknown,
  write: () => writeFileSync('written.txt', 'x'),
  start: () => spawn('true').pid,
  environment: () => Object.keys(process.env),
  wait: () => new Promise<never>(() => setInterval(() => {}, 1000)),
})
