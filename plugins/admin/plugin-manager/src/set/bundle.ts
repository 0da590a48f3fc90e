import { posix } from 'node:path'
import { schema } from '@svc/core'
import { bundleInvalid } from './errors.ts'
import { checkedLock, EMPTY, type Lock } from './lock.ts'

/** One file of a bundle, or a link. */
export type BundledFile = { readonly sha256: string; readonly executable?: true } | { readonly link: string }

/** `bundle.json`, the first entry: what is locked, without what belongs to one machine, and what each other entry must be. */
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
  { faults: 'first' }
)

/** A set's name, for a lock that is looked at before its set has one. */
const SOME_SET = '0-00000000'

/** Throws BUNDLE_INVALID. */
export function bundleIn(text: string): Bundle {
  try {
    const bundle = JSON.parse(text) as Bundle
    const [fault] = bundleSchema.check(bundle)
    if (fault) throw new Error(`${fault.path} ${fault.message}`)
    const { plugins } = checkedLock({ ...EMPTY, set: SOME_SET, plugins: bundle.plugins })
    if (plugins.some(one => one.origin.kind === 'link')) throw new Error('a plugin of it is a link')
    return bundle
  } catch (error) {
    throw bundleInvalid(`${MANIFEST} is not as svc writes it`, error)
  }
}

const MODULES = `${SET}/node_modules/`

/** Whether a link (`path` in the bundle) leads to where a bundle may have one. One of npm is: a program of a package, or the core of svc, which is put there on this machine. */
export function staysInside(path: string, link: string): boolean {
  if (posix.isAbsolute(link) || !path.startsWith(MODULES)) return false
  const target = posix.normalize(posix.join(posix.dirname(path), link))
  return target.startsWith(MODULES) || (path === `${MODULES}@svc/core` && target === `${SET}/host/core`)
}
