import { readdirSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf, type SvcError } from '@svc/core'
import {
  type ChangeRequest,
  type Lock,
  lockFile,
  planChange,
  readLock,
  type SetOptions,
  setFolder,
} from '@svc/plugin-manager/set'
import { type PackageJson, tarballOf } from '../../../../../../test/support/registry.ts'

/** A port without a listener. */
export const NOWHERE = 'http://127.0.0.1:1'

/** A svc home of its own, and an npm that knows no registry and nothing of this machine's user. */
export interface SetWorkspace extends AsyncDisposable {
  readonly folder: string
  readonly home: string
  tarball(pkg: PackageJson, files?: Readonly<Record<string, string>>): Promise<string>
  /** Plans, builds and commits, as a person who says yes to all. */
  change(request: ChangeRequest, options?: SetOptions): Promise<Lock>
  /** A file of a package in the set in force. */
  installed(path: string): Promise<string>
  lock(): Promise<Lock>
}

export async function openSetWorkspace(registry = NOWHERE): Promise<SetWorkspace> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-plugin-set-'))
  const home = join(folder, 'home')
  const before = settings({
    npm_config_registry: registry,
    npm_config_cache: join(folder, 'cache'),
    npm_config_userconfig: join(folder, 'npmrc'),
  })
  const lock = () => readLock(home)
  return {
    folder,
    home,
    lock,
    tarball: (pkg, files) => tarballOf(folder, pkg, files),
    async change(request, options) {
      await using change = await planChange(home, request, options)
      const { plugins } = await change.build()
      return await change.commit(plugins)
    },
    installed: async path => readFile(join(setFolder(home, await lock())!, 'node_modules', path), 'utf8'),
    async [Symbol.asyncDispose]() {
      settings(before)
      await rm(folder, { recursive: true, force: true, maxRetries: 10 })
    },
  }
}

/** Sets variables of this process; returns what they were. */
export function settings(variables: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  const before = Object.fromEntries(Object.keys(variables).map(name => [name, process.env[name]]))
  for (const [name, value] of Object.entries(variables))
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  return before
}

/** The code that something fails with, with the reason where it has one: `NPM_FAILED network`. */
export async function failure(work: Promise<unknown>): Promise<string> {
  const error = await failing(work)
  return [codeOf(error), error.details?.reason].filter(Boolean).join(' ')
}

export const failing = (work: Promise<unknown>): Promise<SvcError> =>
  work.then(
    () => {
      throw new Error('it did not fail')
    },
    (error: SvcError) => error
  )

/** All that lies in a home: the lock's text, and the names below `plugins`. */
export async function stateOf({ home }: Pick<SetWorkspace, 'home'>) {
  const lock = await readFile(lockFile(home), 'utf8').catch(() => '')
  return { lock, files: readdirSync(home, { recursive: true }).map(String).sort() }
}

/** A plugin's package.json. */
export const plugin = (name: string, version = '1.0.0', more: object = {}): PackageJson => ({
  name,
  version,
  type: 'module',
  main: 'index.js',
  keywords: ['svc-plugin'],
  svc: { api: 1, kind: 'tool' },
  ...more,
})

export const CODE = { 'index.js': 'export default { setup() {} }\n' }
