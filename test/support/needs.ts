import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { noBubblewrap } from '@svc/testing'
import { missingEngine, programPath } from '@svc/testing/engines'

const noProgram =
  (program: string, from = program) =>
  () =>
    spawnSync(program, ['--version']).error ? `${from} is not installed on this machine` : undefined

/** Where Debian and others put Chromium. */
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
export const chromiumPath = (): string | undefined =>
  CHROMIUM.find(path => process.env.SVC_TEST_HIDDEN !== 'chromium' && existsSync(path))

/** What tests need of the machine beyond Node and npm: each says why it is missing, or nothing. */
const NEEDS = {
  bubblewrap: noBubblewrap,
  chromium: () => (chromiumPath() ? undefined : 'chromium is not installed on this machine'),
  postgres: () => missingEngine('postgres'),
  // tests start it in front of PostgreSQL
  pgbouncer: () => missingEngine('pgbouncer') ?? missingEngine('postgres'),
  redis: () => missingEngine('redis'),
  haproxy: () => (programPath('haproxy') ? undefined : 'haproxy is not installed on this machine'),
  helm: () => (programPath('helm') ? undefined : 'helm is not installed on this machine'),
  git: noProgram('git'),
  terminal: noProgram('script', 'the program script (util-linux)'),
  strace: noProgram('strace'),
  root: () => (process.getuid?.() === 0 ? undefined : 'only root can give files or processes to another user'),
} satisfies Record<string, () => string | undefined>

export type Need = keyof typeof NEEDS

const reasons = new Map<Need, string | undefined>()

/** Why this machine lacks it; `undefined` where it is there. */
export function lacking(need: Need): string | undefined {
  if (!reasons.has(need)) reasons.set(need, NEEDS[need]())
  return reasons.get(need)
}

/** The form in which the summary finds the reason. */
const skippedTitle = (title: string, reason: string) => `${title} [skipped: ${reason}]`

/** A group of tests that all need it; they are skipped with the reason where it is missing. */
export function describeWith(need: Need, title: string, cases: (this: Mocha.Suite) => void): Mocha.Suite | void {
  const reason = lacking(need)
  return reason === undefined ? describe(title, cases) : describe.skip(skippedTitle(title, reason), cases)
}

/** A form of `it` (mocha's own, or one of `side-by-side.ts`) for tests that need it; they are skipped with the reason where it is missing. */
export function itWith<R extends unknown[]>(need: Need, declare: (title: string, ...rest: R) => Mocha.Test) {
  const reason = lacking(need)
  return (title: string, ...rest: R) => (reason === undefined ? declare(title, ...rest) : it.skip(skippedTitle(title, reason)))
}

/** Skips the test that runs, or in a hook the tests of its group, where there is a reason. */
export function skipBecause(context: Mocha.Context, reason: string | undefined): void {
  if (reason === undefined) return
  const test = context.test as Mocha.Runnable | Mocha.Hook | undefined
  const titled = test && 'type' in test && test.type === 'hook' ? test.parent : test
  if (titled) titled.title = skippedTitle(titled.title, reason)
  context.skip()
}
