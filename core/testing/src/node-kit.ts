import assert from 'node:assert/strict'
import { codeOf, messageOf } from '@svc/core'
import type { BranchRule, ChildOutcome, WorkflowNode } from '@svc/core/contracts'
import { abortable, atOnce, caseMaker, type KitCase, leavesNothingOpen, outcome, skipped } from './kit-case.ts'
import {
  type NodeSample,
  type NodeSubject,
  play,
  type Played,
  type PlayOptions,
  assertDescribed,
  assertSettings,
  refusal,
} from './node-play.ts'

/** Samples of a node. */
export interface NodeSamples {
  /** Tasks that it completes. */
  readonly good: readonly NodeSample[]
  /** Settings that its schema rejects. Those with a code pass the schema and fail with that code. */
  readonly bad: readonly (NodeSample & { readonly code?: string })[]
  /** A task that runs until it is aborted. */
  readonly slow?: NodeSample
  /** A task with an external effect: `keys` returns the idempotency keys that arrived there. */
  readonly keyed?: NodeSample & { keys(): readonly (string | undefined)[] }
  /**
   * Paths in `output`, `state` and the like whose values differ from run to run, such as times and random ids:
   * `output.started_at`, `state.*.at`, where `*` is any key or position.
   */
  readonly unstable?: readonly string[]
  /** Number of concurrent tasks. Default 20. */
  readonly concurrent?: number
}

type Open = () => NodeSubject | Promise<NodeSubject>
type Make = ReturnType<typeof caseMaker<NodeSubject>>

/**
 * Cases for every node type: `for (const one of nodeKit(open, samples)) it(one.title, one.run)`. Each case opens its own node.
 */
export function nodeKit(open: Open, samples: NodeSamples): KitCase[] {
  const make = caseMaker(open)
  return [...describing(make, samples), ...working(make, open, samples), ...failing(make, samples), ...leaving(make, samples)]
}

function describing(make: Make, { good, bad }: NodeSamples): KitCase[] {
  return [
    make('describes itself in plain data', async ({ node }) => assertDescribed(node)),
    make('describes each setting, and redefines no common setting of nodes', async ({ node }) => assertSettings(node)),
    make('accepts the settings of the good samples, and rejects the bad ones and unknown keys', async ({ node }) => {
      assert.ok(good.length > 0, 'pass at least one good sample to the kit')
      for (const sample of good) {
        assert.equal(refusal(node.settings, writtenOf(sample)), undefined, shown(sample))
        assert.ok(
          refusal(node.settings, { ...writtenOf(sample), no_such_key: 1 }),
          'it takes a key that it does not know: "additionalProperties": false'
        )
      }
      for (const { code, ...sample } of bad) {
        const why = refusal(node.settings, writtenOf(sample))
        if (code === undefined) assert.ok(why, `${shown(sample)} fits the schema: say in \`code\` how the node refuses it`)
        else assert.equal(why, undefined, `${shown(sample)} breaks the schema, so the node is never called: leave out \`code\``)
      }
    }),
  ]
}

const writtenOf = ({ written, settings }: NodeSample) => written ?? settings

function working(make: Make, open: Open, { good, unstable = [] }: NodeSamples): KitCase[] {
  const stable = (word: Played['words'][number]) => withoutUnstable(timeless(word), unstable)
  const own = (id?: string): PlayOptions => ({ ctx: abortable(id).ctx })
  return [
    make('yields one declared output for each good sample, and does not change its task', async ({ node }) => {
      for (const sample of good) {
        const played = await play(() => node, sample, own())
        checkAnswer(node, sample, played)
        sample.expect?.(played.answer.output, played.answer.branch)
      }
    }),
    make('continues in another process with only the data of its task', async ({ node }) => {
      for (const sample of good) {
        const here = await play(() => node, sample, own())
        const subjects: NodeSubject[] = []
        const anew = async () => {
          const subject = await open()
          subjects.push(subject)
          return subject.node
        }
        try {
          const { words } = await play(anew, sample, own())
          assert.deepEqual(
            words.map(stable),
            here.words.map(stable),
            `${shown(sample)}: other words where each call has a node of its own`
          )
        } finally {
          for (const subject of subjects) await subject.close?.()
        }
      }
    }),
    make('can run again after its process has ended, or declares that it cannot', async ({ node }) => {
      for (const sample of good) {
        const { value, error } = await outcome(play(() => node, sample, { ...own(), attempt: 2, interrupted: true }))
        if (value) checkAnswer(node, sample, value)
        else if (node.repeatable === 'itself') assert.equal(codeOf(error), 'NODE_INTERRUPTED', String(error))
        else throw error
      }
    }),
  ]
}

/** A copy without the values at these paths. */
function withoutUnstable<T>(value: T, paths: readonly string[]): T {
  const copy = structuredClone(value)
  for (const path of paths) clear(copy, path.split('.'))
  return copy
}

function clear(at: unknown, [key = '', ...rest]: readonly string[]): void {
  if (typeof at !== 'object' || at === null) return
  const keys = key === '*' ? Object.keys(at) : Object.hasOwn(at, key) ? [key] : []
  for (const one of keys)
    if (rest.length === 0) Reflect.set(at, one, null)
    else clear(Reflect.get(at, one), rest)
}

/** An event without its time. */
const timeless = (word: Played['words'][number]) =>
  word.type === 'wait' && word.until !== undefined ? { ...word, until: 0 } : word

function checkAnswer(node: WorkflowNode, sample: NodeSample, { answer: { output, branch } }: Played): void {
  if (node.branches === undefined)
    assert.equal(branch, undefined, `${shown(sample)}: it answers the branch "${branch}", and declares none`)
  else if (node.branches !== 'any')
    assert.ok(
      branch !== undefined && node.branches.includes(branch),
      `${shown(sample)}: it answers the branch "${branch}", and declares ${node.branches.join(', ')}`
    )
  else if (node.answers && branch !== undefined)
    assert.ok(
      node.answers.some(rule => branchesIn(rule, sample).includes(branch)),
      `${shown(sample)}: it answers the branch "${branch}", which is in none of its "answers"`
    )
  assert.notEqual(output, undefined, `${shown(sample)}: it answers nothing; say null`)
  if (node.output === undefined) return
  assert.equal(refusal(node.output, output), undefined, `${shown(sample)}: its output breaks its schema`)
}

function branchesIn({ branches = [], listed, optional = [] }: BranchRule, { settings }: NodeSample): readonly unknown[] {
  const more = listed === undefined ? [] : settings[listed]
  return [...branches, ...optional, ...(Array.isArray(more) ? more : [])]
}

const CHILD_FAILED: ChildOutcome = {
  status: 'failed',
  error: { code: 'CHILD_FAILED', message: 'a child of the kit failed', details: {} },
}
const CANCELLED: ChildOutcome = { status: 'cancelled' }

function failing(make: Make, { good, bad }: NodeSamples): KitCase[] {
  const own = () => ({ ctx: abortable().ctx })
  return [
    make('fails with a code and a readable message', async ({ node }) => {
      for (const { code, ...sample } of bad) {
        if (code === undefined) continue
        const { error, failed } = await atOnce(outcome(play(() => node, sample, own())), `the end of ${shown(sample)}`)
        assert.ok(failed, `${shown(sample)} did not fail`)
        assert.equal(codeOf(error), code, `${shown(sample)}: ${String(error)}`)
        assert.ok(messageOf(error).trim() !== '')
        assert.doesNotMatch(messageOf(error), /\[object |^undefined$|\n\s+at .*:\d+:\d+/, 'not a readable message')
      }
    }),
    make('yields an output or fails with a code when children fail, are cancelled, or the time limit ends', async ({ node }) => {
      const ends = [{ child: () => CHILD_FAILED }, { child: () => CANCELLED }, { woken: () => ({ by: 'time' }) as const }]
      for (const sample of good)
        for (const end of ends) {
          const { value, error } = await outcome(play(() => node, { ...sample, ...end }, own()))
          if (value) checkAnswer(node, sample, value)
          else assert.ok(codeOf(error), `${shown(sample)}: it breaks: ${String(error)}`)
        }
    }),
  ]
}

function leaving(make: Make, { good, slow, keyed, concurrent = 20 }: NodeSamples): KitCase[] {
  const [running, handing] = [
    'ends when it is aborted while it runs',
    'hands on the same idempotency key on each try, and another for other work',
  ]
  return [
    slow
      ? make(running, async ({ node }) => {
          const { ctx, abort } = abortable()
          const ended = outcome(play(() => node, slow, { ctx }))
          setImmediate(abort)
          const { failed } = await atOnce(ended, 'the end of an aborted node')
          assert.ok(failed, 'it answered although it was aborted')
        })
      : skipped(running, '`slow`'),
    keyed
      ? make(handing, async ({ node }) => {
          const before = keyed.keys().length
          for (const [idempotencyKey, attempt] of [
            ['kit:a', 1],
            ['kit:a', 2],
            ['kit:b', 1],
          ] as const)
            await play(() => node, keyed, { ctx: abortable().ctx, idempotencyKey, attempt })
          const [first, again, other] = keyed.keys().slice(before)
          assert.ok(first, 'no key arrived')
          assert.equal(again, first, 'another key on the second try')
          assert.notEqual(other, first, 'the same key for another step')
        })
      : skipped(handing, '`keyed`'),
    make(`runs ${concurrent} times concurrently and leaves nothing open`, async subject => {
      const { node } = subject
      const once = () => play(() => node, good[0]!, { ctx: abortable().ctx })
      await once()
      await leavesNothingOpen(subject, async () => {
        const all = await Promise.all(Array.from({ length: concurrent }, once))
        for (const played of all) checkAnswer(node, good[0]!, played)
      })
    }),
  ]
}

function shown({ settings }: NodeSample): string {
  const text = JSON.stringify(settings)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
