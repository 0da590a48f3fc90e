import { styleText } from 'node:util'
import type { Candidate, IsolationMode, LockedPlugin, Origin, Permissions } from '@svc/plugin-set'
import { shownPath } from '@svc/core'
import { oneLine, visible } from '../text.ts'
import { ISOLATIONS } from './isolation.ts'

/** A plugin as it would be, and where it would run; why not, where it may not. */
export interface Proposal {
  readonly candidate: Candidate
  readonly isolation: IsolationMode
  readonly trusted: boolean
}

/** What a plugin is and asks for, as a person reads it before it is let in. */
export function proposalText({ candidate, isolation }: Proposal): string {
  const { name, version, from, manifest, description } = candidate
  const versions = from === undefined || from === version ? version : `${from} → ${version}`
  const head = `${styleText('bold', name, { stream: process.stderr })} ${versions}  ${visible(manifest.kind)}`
  const rows = [
    ['from', originWords(candidate.origin)],
    ...rowsOf('adds', addedWords(manifest.contributes)),
    ...rowsOf('may', permissionWords(candidate.permissions)),
    ...changeRows(candidate),
    ['scripts', scriptWords(candidate)],
    ['brings', bringsWords(candidate)],
    ...rowsOf('signed', signedWords(candidate)),
    ['runs', ISOLATIONS[isolation]],
  ] as const
  const lines = rows.map(([word, text]) => `  ${word.padEnd(8)}  ${visible(text)}`)
  return [head, ...(description === '' ? [] : [`  ${visible(oneLine(description))}`]), ...lines].join('\n')
}

type Row = readonly [word: string, text: string]
const rowsOf = (word: string, texts: readonly string[]): Row[] => texts.map((text, at) => [at === 0 ? word : '', text])

/** Where a plugin came from, in words. */
export function originWords({ kind, spec }: Origin): string {
  if (kind === 'registry') return `the registry, as ${spec}`
  return `${kind === 'link' ? 'a link to the folder' : `the ${kind}`} ${shownPath(spec)}`
}

const addedWords = (contributes: Candidate['manifest']['contributes'] = {}): string[] =>
  Object.entries(contributes).map(
    ([slot, names]) => `${slot}: ${(Array.isArray(names) ? (names as string[]) : Object.keys(names)).join(', ')}`
  )

const PERMISSION_WORDS: Readonly<Record<keyof Permissions, (name: string) => string>> = {
  network: host => `connect to ${host}`,
  env: variable => `read the variable ${variable}`,
  read: path => `read ${path}`,
  write: path => `write ${path}`,
  services: service => `use ${service} of this service, with all that it holds`,
  hooks: hook => `join ${hook}: see and change what goes through it`,
}

/** What a plugin may do, in words; what may nothing says so. */
export function permissionWords(permissions: Permissions): string[] {
  const words = Object.entries(PERMISSION_WORDS).flatMap(([kind, say]) => (permissions[kind as keyof Permissions] ?? []).map(say))
  return words.length > 0
    ? words
    : ['nothing beyond its own files, and those of the system that every program reads: no network, no variables']
}

/** Only an update has something to compare with. */
function changeRows({ from, permissionChange: { added, removed } }: Candidate): Row[] {
  if (from === undefined) return []
  if (added.length + removed.length === 0) return [['asks', 'for the same as before']]
  return [
    ...rowsOf(
      'asks',
      added.map(one => `for MORE: ${one}`)
    ),
    ...rowsOf('drops', [...removed]),
  ]
}

function scriptWords({ installScripts, scripts }: Candidate): string {
  if (installScripts.length === 0) return 'none at install'
  const names = installScripts.join(', ')
  return scripts ? `${names}: WILL RUN NOW, held by nothing` : `${names}: will not run (--allow-scripts lets them)`
}

function bringsWords({ dependencies, dependencyScripts }: Candidate): string {
  const count = dependencies === 0 ? 'no other packages' : `${dependencies} other ${dependencies === 1 ? 'package' : 'packages'}`
  return dependencyScripts.length === 0 ? count : `${count}; the install scripts of ${dependencyScripts.join(', ')} never run`
}

/** What the registry tells is told on: nobody has checked it. */
function signedWords({ registry }: Candidate): string[] {
  if (registry === undefined) return []
  const { signatures, provenance } = registry
  const keys =
    signatures === 0 ? 'by no key of the registry' : `by ${signatures} ${signatures === 1 ? 'key' : 'keys'} of the registry`
  return [
    `${keys}; ${provenance === undefined ? 'no statement of where it was built' : `where it was built: ${provenance}`} (told by the registry, not checked)`,
  ]
}

/** The same for a program. */
export const proposalFacts = ({ candidate, isolation, trusted }: Proposal) => ({
  name: candidate.name,
  version: candidate.version,
  ...(candidate.from === undefined ? {} : { from_version: candidate.from }),
  kind: candidate.manifest.kind,
  description: candidate.description,
  origin: candidate.origin,
  contributes: candidate.manifest.contributes ?? {},
  permissions: candidate.permissions,
  permission_change: candidate.permissionChange,
  install_scripts: candidate.installScripts,
  scripts_allowed: candidate.scripts,
  dependency_scripts: candidate.dependencyScripts,
  dependencies: candidate.dependencies,
  ...(candidate.registry ? { registry: candidate.registry } : {}),
  integrity: candidate.integrity,
  bytes: candidate.bytes,
  isolation,
  trusted,
  same: candidate.same,
})

/** An installed plugin for a program. */
export const lockedFacts = ({
  name,
  version,
  origin,
  integrity,
  isolation,
  enabled,
  permissions,
  scripts,
  trusted,
}: LockedPlugin) => ({
  name,
  version,
  origin,
  integrity,
  isolation,
  enabled,
  permissions,
  scripts_allowed: scripts,
  trusted,
})
