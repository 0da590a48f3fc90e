import { isTree, type JsonSchema, pathOf } from '@svc/core'
import type {
  Graph,
  NodeDefinition,
  WorkflowDefinition,
  WorkflowNode,
  WorkflowProblem,
  WorkflowSchedule,
} from '@svc/core/contracts'
import type { ValueSchema, ValueProblem } from './schemas.ts'
import type { TextPlace } from './yaml.ts'

/** Kinds of names that definitions can use besides their own nodes. */
export type NameKind = 'tool' | 'profile' | 'mode' | 'team' | 'workflow'

/** The environment that definitions are checked against. */
export interface DefinitionContext {
  readonly typeOf: (name: string) => WorkflowNode | undefined
  readonly types: () => readonly string[]
  /** Whether a name exists. Returns true while that is unknown. */
  readonly has: (kind: NameKind, name: string) => boolean
  /** Names of the secrets that are configured. */
  readonly secrets: readonly string[]
  /** Existing names, for hints. */
  readonly names?: (kind: NameKind) => readonly string[]
  /** The JSON Schema of a setting that a node passes to a named thing, if it is known. */
  readonly takes?: (kind: NameKind, name: string, setting: string) => JsonSchema | undefined
  /** A workflow that is already in memory, to find workflows that contain themselves. */
  readonly definitionOf?: (name: string) => WorkflowDefinition | undefined
  /** Why a schedule with valid fields has no ticks, such as a mistake in its cron expression. */
  readonly scheduleProblem?: (schedule: WorkflowSchedule) => ScheduleProblem | undefined
}

interface ScheduleProblem {
  readonly field: string
  readonly message: string
  readonly hint?: string
}

/** A check of a definition. */
export interface DefinitionCheck {
  readonly context: DefinitionContext
  readonly notes: Notes
  /** The events that the definition accepts; undefined if it accepts all. */
  readonly signals?: readonly string[]
}

export type KeyPath = readonly string[]

/** Maximum nesting of bodies. */
export const DEEPEST = 20

/** A body as a graph; undefined if it is not one. */
export function graphIn(body: unknown): Graph | undefined {
  if (!isTree(body)) return undefined
  if (!('nodes' in body)) return { nodes: { do: body as NodeDefinition & typeof body } }
  if (!isTree(body.nodes)) return undefined
  const nodes = Object.entries(body.nodes).filter(([, node]) => isTree(node))
  return { ...body, nodes: Object.fromEntries(nodes) } as unknown as Graph
}

/** The schema of the output of a node type. */
export const outputOf = (context: DefinitionContext, type: unknown): ValueSchema =>
  typeof type === 'string' ? context.typeOf(type)?.output : undefined

/** Maximum number of reported problems. The rest is counted. */
const MAX_NOTES = 1_000
const MAX_NOTE_LENGTH = 500

/** Collects problems. */
export class Notes {
  readonly #placeOf: ((keys: readonly string[]) => TextPlace) | undefined
  readonly #problems: WorkflowProblem[] = []
  #more = 0

  constructor(placeOf?: (keys: readonly string[]) => TextPlace) {
    this.#placeOf = placeOf
  }

  add(keys: readonly string[], message: string, hint?: string): void {
    this.note({ keys, message, ...(hint === undefined ? {} : { hint }) })
  }

  note({ keys, message, hint, ...given }: ValueProblem & Partial<TextPlace>): void {
    if (this.#problems.length >= MAX_NOTES) return void (this.#more += 1)
    const { line, column } = given.line === undefined ? (this.#placeOf?.(keys) ?? {}) : given
    const place = line === undefined || column === undefined ? {} : { line, column }
    const about = { ...place, ...(hint === undefined ? {} : { hint: cut(hint) }) }
    this.#problems.push({ message: cut(message), path: pathOf(keys), ...about })
  }

  /** The problems in the order of their lines. */
  get problems(): readonly WorkflowProblem[] {
    const sorted = this.#problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    return this.#more === 0 ? sorted : [...sorted, { message: `${this.#more} more problems are not listed`, path: '' }]
  }
}

const cut = (text: string) => (text.length > MAX_NOTE_LENGTH ? `${text.slice(0, MAX_NOTE_LENGTH)}…` : text)
