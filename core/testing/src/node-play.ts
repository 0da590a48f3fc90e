import assert from 'node:assert/strict'
import type { CallContext, JsonSchema } from '@svc/core'
import type { Budget, ChildOutcome, ChildSpec, Json, NodeStep, NodeTask, WorkflowNode, NodeDefinition } from '@svc/core/contracts'
import { assertPlain, frozen, type KitSubject, compileSchema } from './kit-case.ts'

/** A node type to test. It can run in another process. */
export interface NodeSubject extends KitSubject {
  readonly node: WorkflowNode
}

type Settings = { readonly [key: string]: Json | undefined }
type Wait = Extract<NodeStep, { readonly type: 'wait' }>
type Fork = Extract<NodeStep, { readonly type: 'fork' }>
type Output = Extract<NodeStep, { readonly type: 'output' }>

/** A task of a node: its settings and the reactions to its events. */
export interface NodeSample {
  /** The settings with evaluated expressions. */
  readonly settings: Settings
  /** The settings as written, if different. */
  readonly written?: Settings
  /** Late expressions, for when the results of children exist. */
  readonly late?: (children: Readonly<Record<string, ChildOutcome>>) => Settings
  /** Default: none, or `do`, or `one` and `two`, depending on the type. */
  readonly bodies?: readonly string[]
  /** Branches with an edge. */
  readonly branches?: readonly string[]
  readonly allowance?: Budget
  /** The outcome of a child. Default: it completes with its variables. */
  readonly child?: (child: ChildSpec) => ChildOutcome
  /** Ends a wait. Default: the event, a person who approves, or the time. */
  readonly woken?: (wait: Wait) => NonNullable<NodeTask['woken']>
  /** Checks the result. */
  expect?(output: Json, branch: string | undefined): void
}

/** How to run a sample. */
export interface PlayOptions {
  readonly ctx: CallContext
  readonly idempotencyKey?: string
  readonly attempt?: number
  /** True: the process of each earlier call has died. */
  readonly interrupted?: boolean
}

/** The result of a sample: the final events of all calls, in order. */
export interface Played {
  readonly words: readonly (Wait | Fork | Output)[]
  readonly answer: Output
}

/** More calls mean an endless loop. */
const MOST_CALLS = 1_000

/** Runs a sample to its result. With `nodeFor`, each call uses its own node. */
export async function play(
  nodeFor: () => WorkflowNode | Promise<WorkflowNode>,
  sample: NodeSample,
  options: PlayOptions
): Promise<Played> {
  const words: (Wait | Fork | Output)[] = []
  const keys = new Set<string>()
  let back: Partial<NodeTask> = {}
  while (words.length < MOST_CALLS) {
    const node = await nodeFor()
    const task = taskOf(node, sample, back, options)
    const word = await lastWord(node, task, options.ctx)
    words.push(word)
    if (word.type === 'output') return { words, answer: word }
    if (word.type === 'fork') checkFork(word, task.bodies, keys)
    back = backTo(word, sample)
  }
  return assert.fail(`it has not answered after ${MOST_CALLS} calls`)
}

/** Default bodies of a node. */
const bodiesOf = ({ body }: WorkflowNode) => (body === 'do' ? ['do'] : body === 'bodies' ? ['one', 'two'] : [])

function taskOf(node: WorkflowNode, sample: NodeSample, back: Partial<NodeTask>, options: PlayOptions): NodeTask {
  const { settings, late, bodies = bodiesOf(node), branches = [], allowance = {} } = sample
  const { idempotencyKey = 'kit:step', attempt = 1, interrupted } = options
  return frozen({
    run: { id: 'kit', workflow: 'kit' },
    step: 'step',
    node: 'step',
    attempt,
    idempotencyKey,
    bodies,
    branches,
    allowance,
    ...(interrupted ? { interrupted } : {}),
    ...back,
    settings: back.children && late ? { ...settings, ...late(back.children) } : settings,
  })
}

/** Calls a node once. Throws its errors and violations of the contract. */
async function lastWord(node: WorkflowNode, task: NodeTask, ctx: CallContext): Promise<Wait | Fork | Output> {
  let last: Wait | Fork | Output | undefined
  for await (const step of node.run(task, ctx)) {
    assert.equal(last, undefined, `it continues after its last item (output, wait or fork) with "${step.type}"`)
    assertPlain(step, 'step')
    if (step.type === 'progress') checkProgress(step)
    else if (step.type === 'spent') checkSpent(step)
    else if (step.type !== 'workplace') last = step
  }
  assert.ok(last, 'it ended without a last item: output, wait or fork')
  return last
}

function checkProgress({ fraction }: Extract<NodeStep, { readonly type: 'progress' }>): void {
  assert.ok(fraction === undefined || (fraction >= 0 && fraction <= 1), `a fraction of ${fraction}, which is not from 0 to 1`)
}

function checkSpent({ tokens, tool_calls: calls = 0 }: Extract<NodeStep, { readonly type: 'spent' }>): void {
  for (const count of [calls, tokens?.input ?? 0, tokens?.output ?? 0])
    assert.ok(Number.isInteger(count) && count >= 0, `it reports costs of ${count}`)
}

function checkFork({ children, width }: Fork, bodies: readonly string[], keys: Set<string>): void {
  assert.ok(width === undefined || (Number.isInteger(width) && width >= 1), `a width of ${width}`)
  for (const { key, body } of children) {
    assert.match(key, /^[A-Za-z0-9_-]+$/, 'the key of a child')
    assert.ok(!keys.has(key), `two children of the step have the key "${key}"`)
    keys.add(key)
    if (typeof body === 'string') assert.ok(bodies.includes(body), `there is no body "${body}"`)
  }
}

function backTo(word: Wait | Fork, sample: NodeSample): Partial<NodeTask> {
  const state = word.state === undefined ? {} : { state: word.state }
  if (word.type === 'wait') return { ...state, woken: (sample.woken ?? wokenBy)(word) }
  const outcomes = word.children.map(child => [child.key, (sample.child ?? completed)(child)] as const)
  return { ...state, children: Object.fromEntries(outcomes) }
}

const completed = ({ vars = {} }: ChildSpec): ChildOutcome => ({ status: 'completed', output: { ...vars } })

function wokenBy({ event, ask }: Wait): NonNullable<NodeTask['woken']> {
  if (event !== undefined) return { by: 'event', data: {} }
  if (ask) return { by: 'answer', data: ask.kind === 'choice' ? (ask.choices?.[0] ?? null) : true }
  return { by: 'time' }
}

type Named<T> = keyof { [K in keyof T as string extends K ? never : K]: T[K] }
/** Keys of every node. The engine handles them and the node never sees them. */
const RESERVED: Readonly<Record<Named<NodeDefinition>, true>> = {
  type: true,
  description: true,
  next: true,
  branches: true,
  retry: true,
  timeout: true,
  catch: true,
  compensate: true,
  repeatable: true,
  max_visits: true,
  do: true,
  bodies: true,
}
const KINDS = ['tool', 'tools', 'profile', 'mode', 'team', 'workflow', 'signal']
const EXPRESSIONS: readonly unknown[] = ['bool', 'list', 'any']
const SHORTEST_DESCRIPTION = 10

interface Property {
  readonly description?: unknown
  readonly expression?: unknown
  readonly late?: unknown
}
const propertiesOf = ({ settings }: WorkflowNode) => (settings as { properties?: Record<string, Property> }).properties ?? {}

/** The description of a node type. */
export function assertDescribed(node: WorkflowNode): void {
  const { run: _run, ...data } = node
  assertPlain(data, 'node')
  assert.ok(node.description.trim().length >= SHORTEST_DESCRIPTION, 'the description is too short for a person who selects nodes')
  assert.ok([true, false, 'itself'].includes(node.repeatable), 'repeatable')
  assert.ok(node.body === undefined || node.body === 'do' || node.body === 'bodies', 'body')
  const { branches = [] } = node
  assert.ok(branches === 'any' || branches.every(word => /^[\w-]+$/.test(word)), 'branches are words')
  assert.ok(node.answers === undefined || branches === 'any', 'answers: only with branches: any')
}

/** The schema of its settings, and the keys in it. */
export function assertSettings(node: WorkflowNode): void {
  compileSchema(node.settings, 'settings')
  assert.equal((node.settings as { type?: unknown }).type, 'object', 'settings must be the schema of an object')
  for (const [name, property] of Object.entries(propertiesOf(node))) assertProperty(name, property)
  for (const [setting, kind] of Object.entries(node.names ?? {})) {
    assert.ok(Object.hasOwn(propertiesOf(node), setting), `names: there is no setting "${setting}"`)
    assert.ok(KINDS.includes(kind), `names: "${kind}" is none of ${KINDS.join(', ')}`)
  }
  for (const [setting, name] of Object.entries(node.calledWith ?? {})) {
    assert.ok(Object.hasOwn(propertiesOf(node), setting), `calledWith: there is no setting "${setting}"`)
    assert.ok(Object.hasOwn(node.names ?? {}, name), `calledWith: names has no setting "${name}"`)
  }
}

function assertProperty(name: string, { description, expression, late }: Property): void {
  assert.ok(!Object.hasOwn(RESERVED, name), `every node has a key "${name}": the node would never see the setting`)
  assert.ok(typeof description === 'string' && description !== '', `the setting ${name} has no description`)
  assert.ok(
    expression === undefined || EXPRESSIONS.includes(expression),
    `the setting ${name} is an expression of an unknown kind`
  )
  assert.ok(late === undefined || expression !== undefined, `the setting ${name} is late but not an expression`)
}

/** Validators by schema text, because the same node is opened many times. */
const checks = new Map<string, ReturnType<typeof compileSchema>>()

function compiled(schema: JsonSchema) {
  const text = JSON.stringify(schema)
  const check = checks.get(text) ?? compileSchema(schema, 'settings or output')
  checks.set(text, check)
  return check
}

/** Returns why a schema rejects a value, if it does. */
export function refusal(schema: JsonSchema, value: unknown): string | undefined {
  const check = compiled(schema)
  return check(structuredClone(value)) ? undefined : JSON.stringify(check.errors)
}
