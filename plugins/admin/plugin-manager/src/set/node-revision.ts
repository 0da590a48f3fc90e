import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { schema } from '@svc/core'
import { replaceFile } from '@svc/runtime/home-files'
import type { Revision } from './revisions.ts'

/** Which revision of the cluster's plugins a svc home has, and the newer one that it could not take over. */
export interface NodeRevision {
  /** 0: none. */
  readonly revision: number
  readonly sha256: string
  readonly failed?: FailedRevision
}

interface FailedRevision {
  readonly revision: number
  readonly code: string
  /** Without paths. */
  readonly message: string
}

const NONE: NodeRevision = { revision: 0, sha256: '' }

const number = { type: 'integer', minimum: 0 } as const
const text = { type: 'string' } as const
const nodeSchema = schema<NodeRevision>({
  type: 'object',
  properties: {
    revision: number,
    sha256: text,
    failed: {
      type: 'object',
      properties: { revision: number, code: text, message: text },
      required: ['revision', 'code', 'message'],
    },
  },
  required: ['revision', 'sha256'],
})

const fileIn = (home: string) => join(home, 'plugins', 'revision.json')

/** A missing or damaged file is no revision: the node then takes the newest one over again. */
export function readNodeRevision(home: string): NodeRevision {
  try {
    const value: unknown = JSON.parse(readFileSync(fileIn(home), 'utf8'))
    return nodeSchema.check(value).length === 0 ? (value as NodeRevision) : NONE
  } catch {
    return NONE
  }
}

export const writeNodeRevision = (home: string, revision: NodeRevision): Promise<void> =>
  replaceFile(fileIn(home), `${JSON.stringify(revision)}\n`)

/** Whether a node has this revision. The number alone is not enough: a restored database counts anew. */
export const hasRevision = (node: NodeRevision, { revision, sha256 }: Pick<Revision, 'revision' | 'sha256'>): boolean =>
  node.revision === revision && node.sha256 === sha256
