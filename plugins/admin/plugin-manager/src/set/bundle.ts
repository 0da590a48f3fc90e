import { posix } from 'node:path'
import { schema } from '@svc/core'
import { bundleInvalid } from './errors.ts'
import { givenPath } from './given-packages.ts'
import { checkedLock, EMPTY, type Lock } from './lock.ts'

/** A file or link in a bundle. */
export type BundledFile = { readonly sha256: string; readonly executable?: true } | { readonly link: string }

/** `bundle.json`, the first entry: the lock without parts of one machine, and a description of every other entry. */
export interface Bundle {
  readonly bundle: 1
  readonly plugins: Lock['plugins']
  readonly dependencies: string
  /** By path below `set/`. */
  readonly files: Readonly<Record<string, BundledFile>>
}

export const [MANIFEST, SET] = ['bundle.json', 'set'] as const

const hash = { type: 'string', pattern: '^[0-9a-f]{64}$' }
const closed = (properties: object, required: readonly string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const file = {
  anyOf: [
    closed({ sha256: hash, executable: { const: true } }, ['sha256']),
    closed({ link: { type: 'string', minLength: 1 } }, ['link']),
  ],
}
const bundleSchema = schema<Bundle>(
  closed(
    {
      bundle: { enum: [1] },
      plugins: { type: 'array', minItems: 1 },
      dependencies: { anyOf: [hash, { const: '' }] },
      files: { type: 'object', additionalProperties: file },
    },
    ['bundle', 'plugins', 'dependencies', 'files']
  ),
  { problems: 'first' }
)

/** A placeholder for the set in a lock that is checked before its set has a name. */
const SOME_SET = '0-00000000'

/** Throws BUNDLE_INVALID. */
export function bundleIn(text: string): Bundle {
  try {
    const bundle = JSON.parse(text) as Bundle
    const [problem] = bundleSchema.check(bundle)
    if (problem) throw new Error(`${problem.path} ${problem.message}`)
    const { plugins } = checkedLock({ ...EMPTY, set: SOME_SET, plugins: bundle.plugins })
    if (plugins.some(plugin => plugin.origin.kind === 'link')) throw new Error('one of its plugins is a link')
    return bundle
  } catch (error) {
    throw bundleInvalid(`${MANIFEST} does not have the form that svc writes`, error)
  }
}

const MODULES = `${SET}/node_modules/`

/** Whether a bundle may contain this link: a program of a package, or a package of svc, which each machine links itself. */
export function staysInside(path: string, link: string): boolean {
  if (posix.isAbsolute(link) || !path.startsWith(MODULES)) return false
  const target = posix.normalize(posix.join(posix.dirname(path), link))
  return target.startsWith(MODULES) || isGiven(path.slice(MODULES.length), target)
}

function isGiven(name: string, target: string): boolean {
  const path = givenPath(name)
  return path !== undefined && target === `${SET}/${path}`
}
