import { isTree, type JsonSchema, pathOf } from '@svc/core'
import type { Graph, NodeDefinition, WorkflowDefinition, WorkflowNode, WorkflowProblem } from '@svc/core/contracts'
import type { Known, Wrong } from './schemas.ts'

/** What definitions can name besides their own nodes. */
export type NameKind = 'tool' | 'profile' | 'mode' | 'team' | 'workflow'

/** What definitions are held against. */
export interface Ground {
  readonly typeOf: (name: string) => WorkflowNode | undefined
  readonly types: () => readonly string[]
  /** What is not known yet counts as there. */
  readonly has: (kind: NameKind, name: string) => boolean
  /** Names of the secrets that are configured. */
  readonly secrets: readonly string[]
  /** Names that there are, for a hint. */
  readonly names?: (kind: NameKind) => readonly string[]
  /** What a thing is called with, where that is known: so that what cannot fit is found. */
  readonly takes?: (kind: NameKind, name: string, setting: string) => JsonSchema | undefined
  /** Another workflow, where it can be had at once: so that one which contains itself is found. */
  readonly definitionOf?: (name: string) => WorkflowDefinition | undefined
}

/** One look at a definition. */
export interface Check {
  readonly ground: Ground
  readonly notes: Notes
}

export type Keys = readonly string[]

/** Levels of bodies within bodies. */
export const DEEPEST = 20

/** A body as a graph, as far as it is one at all. */
export function graphIn(body: unknown): Graph | undefined {
  if (!isTree(body)) return undefined
  if (!('nodes' in body)) return { nodes: { do: body as NodeDefinition & typeof body } }
  if (!isTree(body.nodes)) return undefined
  const nodes = Object.entries(body.nodes).filter(([, node]) => isTree(node))
  return { ...body, nodes: Object.fromEntries(nodes) } as unknown as Graph
}

/** What is known of the output of a node of a type. */
export const outputOf = (ground: Ground, type: unknown): Known =>
  typeof type === 'string' ? ground.typeOf(type)?.output : undefined

/** More are counted, but not told. */
const MAX_NOTES = 1_000
const MAX_NOTE_LENGTH = 500

/** Keeps what is wrong. */
export class Notes {
  readonly #lineOf: ((keys: readonly string[]) => number) | undefined
  readonly #problems: WorkflowProblem[] = []
  #more = 0

  constructor(lineOf?: (keys: readonly string[]) => number) {
    this.#lineOf = lineOf
  }

  add(keys: readonly string[], message: string, hint?: string): void {
    this.note({ keys, message, ...(hint === undefined ? {} : { hint }) })
  }

  note({ keys, message, hint, line = this.#lineOf?.(keys) }: Wrong & { readonly line?: number }): void {
    if (this.#problems.length >= MAX_NOTES) return void (this.#more += 1)
    const about = { ...(line === undefined ? {} : { line }), ...(hint === undefined ? {} : { hint: cut(hint) }) }
    this.#problems.push({ message: cut(message), path: pathOf(keys), ...about })
  }

  /** All of them, as they stand in the text. */
  get problems(): readonly WorkflowProblem[] {
    const sorted = this.#problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    return this.#more === 0 ? sorted : [...sorted, { message: `${this.#more} more problems are not told`, path: '' }]
  }
}

const cut = (text: string) => (text.length > MAX_NOTE_LENGTH ? `${text.slice(0, MAX_NOTE_LENGTH)}…` : text)
