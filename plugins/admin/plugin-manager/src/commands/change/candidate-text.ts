import { styleText } from 'node:util'
import type { Candidate, IsolationMode, LockedPlugin, Origin } from '../../set.ts'
import { shownPath, slotsOf } from '@svc/core'
import { oneLine, visible } from '@svc/cli/command'
import { runsText } from './isolation.ts'
import { permissionWords } from './permission-words.ts'
import { routeWords } from './route-words.ts'
import { unsetIn } from '@svc/cli/program'

/** A plugin as it would be, and where it would run; why not, where it may not. */
export interface Proposal {
  readonly candidate: Candidate
  readonly isolation: IsolationMode
  readonly trusted: boolean
}

/** What a plugin is and asks for, as a person reads it before it is let in. `isOpen`: its process may run where no sandbox holds it. */
export function proposalText({ candidate, isolation }: Proposal, isOpen: boolean): string {
  const { name, version, from, manifest, description } = candidate
  const versions = from === undefined || from === version ? version : `${from} → ${version}`
  const head = `${styleText('bold', name, { stream: process.stderr })} ${versions}  ${visible(manifest.kind)}`
  const rows = [
    ['from', originWords(candidate.origin)],
    ...rowsOf('adds', addedWords(manifest.contributes)),
    ...rowsOf('answers', routeWords(manifest.contributes)),
    ...rowsOf('checks', schemeWords(manifest)),
    ...rowsOf('may', permissionWords(candidate.permissions)),
    ...changeRows(candidate),
    ['scripts', scriptWords(candidate)],
    ['brings', bringsWords(candidate)],
    ...rowsOf('signed', signedWords(candidate)),
    ['runs', runsText(isolation, isOpen)],
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

/** Which credentials a scheme reads, only its code says. */
const schemeWords = (manifest: Candidate['manifest']): string[] =>
  slotsOf(manifest).flatMap(([slot, names]) =>
    slot === 'auth_schemes'
      ? names.map(name => `credentials of callers: "${name}" sees those that it reads, and says who may do what`)
      : []
  )

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

/** As the registry reports it, unchecked. */
function signedWords({ registry }: Candidate): string[] {
  if (registry === undefined) return []
  const { signatures, provenance } = registry
  const keys =
    signatures === 0 ? 'by no key of the registry' : `by ${signatures} ${signatures === 1 ? 'key' : 'keys'} of the registry`
  return [
    `${keys}; ${provenance === undefined ? 'no statement of where it was built' : `where it was built: ${provenance}`} (as the registry reports, unchecked)`,
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
  unset_variables: unsetIn(candidate.permissions),
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
