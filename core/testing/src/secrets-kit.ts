import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { codeOf, redactText } from '@svc/core'
import type { Secrets } from '@svc/core/contracts'
import { abortable, atOnce, becomes, caseMaker, type KitCase } from './kit-case.ts'

/** Secrets to test: no secret exists. */
export interface SecretsSubject {
  readonly secrets: Secrets
  /** The same secrets in another process. */
  readonly other: Secrets
  close?(): unknown
}

const { ctx } = abortable('secrets kit')
const random = () => `kit-${randomBytes(18).toString('base64url')}`

/** Names that no implementation may accept, whatever it keeps the secrets in. */
const BAD_NAMES: readonly unknown[] = [
  '',
  ' ',
  'a b',
  'a\nb',
  'a\0b',
  '../x',
  'a/b',
  'a.b',
  '__proto__',
  '1a',
  '${env:HOME}',
  'ключ',
  'ﬁle',
  'a\u200bb',
  '\ud800',
  'x'.repeat(65),
  'x'.repeat(10_000),
  null,
  undefined,
  7,
  {},
  ['a'],
]
/** Names that are also members of every object. */
const ODD_NAMES = ['constructor', 'toString', 'hasOwnProperty', 'valueOf']
const ODD_VALUES = ['\0', 'line one\nline two\r\n', '\u{1f511} "quoted" \\ back', ' '.repeat(9), 'x'.repeat(65_536)]

/** Asserts that work fails with a code and that neither value nor hostile name is in the error. */
async function refused(work: Promise<unknown>, code: string, hidden: readonly string[] = []): Promise<void> {
  const error: unknown = await work.then(
    () => assert.fail(`expected ${code}`),
    (thrown: unknown) => thrown
  )
  assert.equal(codeOf(error), code, String(error))
  const text = `${(error as Error).message} ${JSON.stringify(error)}`
  for (const value of hidden) assert.ok(!text.includes(value), 'the error contains a value')
  assert.ok(text.length < 2_000, 'the error repeats its input')
}

/**
 * Cases for every provider of secrets: `for (const one of secretsKit(open)) it(one.title, one.run)`. `open` returns the secrets
 * without any secret each time, as seen by two processes.
 */
export function secretsKit(open: () => SecretsSubject | Promise<SecretsSubject>): KitCase[] {
  const make = caseMaker(open)
  return [...keeping(make), ...sharing(make), ...refusing(make), ...following(make)]
}

type Make = ReturnType<typeof caseMaker<SecretsSubject>>

function keeping(make: Make): KitCase[] {
  return [
    make('returns the value that was set, in every process', async ({ secrets, other }) => {
      const value = random()
      await secrets.set('token', value, ctx)
      assert.equal((await secrets.read('token', ctx)).value, value)
      assert.equal((await other.read('token', ctx)).value, value)
    }),
    make('returns unusual values unchanged', async ({ secrets }) => {
      for (const value of ODD_VALUES) {
        await secrets.set('odd', value, ctx)
        assert.ok((await secrets.read('odd', ctx)).value === value, `a value of ${value.length} characters differs`)
      }
    }),
    make('gives each value another version', async ({ secrets }) => {
      const versions = new Set<string>()
      for (let round = 0; round < 3; round++) {
        await secrets.set('token', random(), ctx)
        versions.add((await secrets.read('token', ctx)).version)
      }
      await secrets.remove('token', ctx)
      await secrets.set('token', random(), ctx)
      versions.add((await secrets.read('token', ctx)).version)
      assert.equal(versions.size, 4)
    }),
    make('lists names and times in order, without values', async ({ secrets, other }) => {
      const values = [random(), random()]
      await secrets.set('b', values[0]!, ctx)
      await secrets.set('a', values[1]!, ctx)
      const list = await other.list(ctx)
      assert.deepEqual(
        list.map(({ name, state }) => [name, state]),
        [
          ['a', 'ready'],
          ['b', 'ready'],
        ]
      )
      for (const value of values) assert.ok(!JSON.stringify(list).includes(value))
      for (const { changedAt } of list) assert.ok(Math.abs(Date.now() - Number(changedAt)) < 60_000)
    }),
    make('distinguishes names that every JavaScript object has, such as constructor', async ({ secrets }) => {
      for (const name of ODD_NAMES) {
        await refused(secrets.read(name, ctx), 'SECRET_UNKNOWN')
        await secrets.set(name, `${name}-value`, ctx)
        assert.equal((await secrets.read(name, ctx)).value, `${name}-value`)
      }
    }),
  ]
}

function sharing(make: Make): KitCase[] {
  return [
    make('forgets a removed secret, in every process', async ({ secrets, other }) => {
      await secrets.set('token', random(), ctx)
      await other.remove('token', ctx)
      await refused(secrets.read('token', ctx), 'SECRET_UNKNOWN')
      await refused(secrets.remove('token', ctx), 'SECRET_UNKNOWN')
      assert.deepEqual(await secrets.list(ctx), [])
    }),
    make('keeps every value when two processes change secrets at once', async ({ secrets, other }) => {
      const names = Array.from({ length: 20 }, (_, at) => `token_${at}`)
      await Promise.all(names.flatMap(name => [secrets.set(name, `${name}-one`, ctx), other.set(name, `${name}-two`, ctx)]))
      for (const name of names) assert.match((await secrets.read(name, ctx)).value, new RegExp(`^${name}-(one|two)$`))
    }),
    make('seals again without changing a value or version', async ({ secrets, other }) => {
      const value = random()
      await secrets.set('token', value, ctx)
      const before = await secrets.read('token', ctx)
      await secrets.reseal(ctx)
      assert.deepEqual(await other.read('token', ctx), before)
    }),
  ]
}

function refusing(make: Make): KitCase[] {
  return [
    make('rejects names that are not plain words', async ({ secrets }) => {
      for (const name of BAD_NAMES as readonly string[]) {
        await refused(secrets.read(name, ctx), 'SECRET_INVALID')
        await refused(secrets.set(name, 'hidden-value', ctx), 'SECRET_INVALID', ['hidden-value'])
        await refused(secrets.remove(name, ctx), 'SECRET_INVALID')
      }
      assert.deepEqual(await secrets.list(ctx), [])
    }),
    make('rejects values that it cannot store unchanged, without repeating them', async ({ secrets }) => {
      const values: readonly unknown[] = ['', 'x'.repeat(65_537), 'é'.repeat(40_000), 'a\ud800', 7, null, undefined, {}, ['a']]
      for (const value of values as readonly string[])
        await refused(secrets.set('token', value, ctx), 'SECRET_INVALID', typeof value === 'string' && value ? [value] : [])
      await refused(secrets.read('token', ctx), 'SECRET_UNKNOWN')
    }),
    make('keeps values out of the output of the process', async ({ secrets }) => {
      const value = `${random()}"\n${random()}`
      await secrets.set('token', value, ctx)
      await secrets.read('token', ctx)
      await becomes('redaction', () => !redactText(`a ${value} b`).includes(value))
      for (const form of [
        value,
        JSON.stringify(value),
        encodeURIComponent(value),
        Buffer.from(`user:${value}`).toString('base64'),
      ])
        assert.ok(!redactText(`<${form}>`).includes(form.slice(8, 40)), `not redacted: ${form}`)
    }),
  ]
}

function following(make: Make): KitCase[] {
  return [
    make('reports each change of a secret and no other', async ({ secrets, other }) => {
      await secrets.set('token', random(), ctx)
      const ending = abortable('changes')
      const changes = secrets.changes('token', ending.ctx)[Symbol.asyncIterator]()
      const next = changes.next()
      next.catch(() => {})
      await other.set('another', random(), ctx)
      await other.set('token', random(), ctx)
      const { value } = await atOnce(next, 'a change')
      assert.equal((value as { version: string }).version, (await secrets.read('token', ctx)).version)
      ending.abort()
      await changes.return?.()
    }),
  ]
}
