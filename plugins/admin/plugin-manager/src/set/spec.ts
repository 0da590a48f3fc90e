import { statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { specInvalid } from './errors.ts'
import { NAME, type Origin } from './lock.ts'

/** Parses the user's word: a path is a folder or a tarball, everything else is for the registry. Throws PLUGIN_SPEC_INVALID. */
export function originOf(spec: string): Origin {
  const path = pathIn(spec)
  return path === undefined ? registryOrigin(spec) : fileOrigin(spec, path)
}

export function linkOrigin(spec: string): Origin {
  if (spec.trim() === '') throw specInvalid(spec, 'it is empty')
  const folder = resolve(untilded(spec))
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw specInvalid(spec, 'the folder does not exist')
  return { kind: 'link', spec: folder }
}

/** The path that a spec names; undefined for a name. A name cannot begin with a dot, so no path is taken for a name. */
export function pathIn(spec: string): string | undefined {
  const plain = spec.replace(/^file:(\/\/)?/, '')
  const isPath = plain !== spec || /^(\.{1,2}(\/|$)|\/|~\/|[A-Za-z]:\\)/.test(plain) || /\.(tgz|tar\.gz)$/.test(plain)
  return isPath ? resolve(untilded(plain)) : undefined
}

const untilded = (path: string) => (path.startsWith('~/') ? join(homedir(), path.slice(2)) : path)

function fileOrigin(spec: string, path: string): Origin {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) throw specInvalid(spec, 'the file or folder does not exist')
  return { kind: stat.isDirectory() ? 'folder' : 'tarball', spec: path }
}

function registryOrigin(spec: string): Origin {
  if (/^[\w+.-]+:/.test(spec) || spec.includes('://'))
    throw specInvalid(spec, 'svc does not fetch from an address. Download the tarball and install the file')
  if (spec.trim() === '') throw specInvalid(spec, 'it is empty')
  const [name, range] = partsOf(spec)
  if (!NAME.test(name)) throw specInvalid(spec, 'npm does not accept this name')
  if (range !== undefined && !/^[\w.^~<>=|* +-]+$/.test(range))
    throw specInvalid(spec, 'it has no version or range after its name')
  return { kind: 'registry', spec }
}

/** `@a/b@^1` → `@a/b`, `^1`. */
export function partsOf(spec: string): [name: string, range?: string] {
  const at = spec.indexOf('@', 1)
  return at < 0 ? [spec] : [spec.slice(0, at), spec.slice(at + 1)]
}

/** Its label before its package.json is read. */
export const labelOf = ({ kind, spec }: Origin): string => (kind === 'registry' ? spec : basename(spec))
