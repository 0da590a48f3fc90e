import assert from 'node:assert/strict'
import type { JsonSchema } from '@svc/core'
import type { NodeDefinition, WorkflowNode } from '@svc/core/contracts'
import { assertPlain, compileSchema } from './kit-case.ts'

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
const KINDS = ['tool', 'tools', 'profile', 'mode', 'team', 'workflow']
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
  assert.ok(node.description.trim().length >= SHORTEST_DESCRIPTION, 'the description is too short to choose the node by')
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
  assert.ok(expression === undefined || EXPRESSIONS.includes(expression), `the setting ${name} is an expression of no kind`)
  assert.ok(late === undefined || expression !== undefined, `the setting ${name} is late and no expression`)
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
