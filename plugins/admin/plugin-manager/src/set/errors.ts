import { messageOf, type SvcError, svcError } from '@svc/core'

/** The text of npm or an archive, for `details`, without credentials and local paths. */
export const plainWords = (text: string): string =>
  text
    .replace(/\b(https?:\/\/)[^\s/@]*@/g, '$1')
    .replace(/((?:_authToken|_auth|_password|token)\s*[=:]\s*)\S+/gi, '$1…')
    .replace(/(?<![\w:/.])(?:file:\/*)?\/(?:[^\s/'"]+\/)+([^\s/'"]*)/g, '…/$1')

const whyOf = (cause: unknown) => plainWords(messageOf(cause))

export const specInvalid = (spec: string, why: string): SvcError =>
  svcError('PLUGIN_SPEC_INVALID', `${JSON.stringify(plainWords(spec))} names no plugin: ${why}`, {
    hint: 'Write name, name@range, a folder (./weather), or a tarball (./weather-1.0.0.tgz)',
  })

export const notInstalled = (plugin: string, near: string | undefined): SvcError =>
  svcError('PLUGIN_NOT_INSTALLED', 'is not installed', {
    plugin,
    hint: near === undefined ? 'Run `svc plugins list` to see the installed plugins' : `did you mean "${near}"?`,
  })

export const notAPlugin = (plugin: string, why: string): SvcError =>
  svcError('PLUGIN_NOT_A_PLUGIN', why, {
    plugin,
    hint: 'Install another package. In your own package, add "svc": { "api": 1, "kind": "tool" } to its package.json (docs/guides/package-a-plugin.md)',
  })

/** `isPublished`: it comes from a registry, so only its author can build it. */
export const notBuilt = (plugin: string, file: string, isPublished = false): SvcError =>
  svcError('PLUGIN_IMPORT_FAILED', `its package.json names the module ${file}, which does not exist`, {
    plugin,
    hint: isPublished
      ? 'Install another version, and report the missing file to its author'
      : 'Build the plugin (npm run build), then run this command again. `svc plugins lint` shows further problems',
  })

export const dependencyStray = (plugin: string | undefined, what: string): SvcError =>
  svcError('PLUGIN_DEPENDENCY_STRAY', plainWords(what), {
    ...(plugin === undefined ? {} : { plugin }),
    hint: 'Do not install this plugin. If it is your plugin, replace the dependency with a registry package and a version range',
  })

export const nameOurs = (plugin: string): SvcError =>
  svcError('PLUGIN_NAME_OURS', 'has a name that is reserved for packages of svc', {
    plugin,
    hint: 'Rename the package: names that begin with @svc/ are reserved',
  })

export const nameDiffers = (asked: string, plugin: string): SvcError =>
  svcError('PLUGIN_NAME_DIFFERS', `the registry names it ${asked}, but its package.json says ${plugin}`, {
    plugin: asked,
    details: { asked, name: plugin },
    hint: 'Do not install it, and report it to the registry',
  })

export const tarballUnsafe = (plugin: string, why: string, cause?: unknown): SvcError =>
  svcError('PLUGIN_TARBALL_UNSAFE', `its tarball ${why}`, {
    plugin,
    cause,
    hint: 'Do not install it. For your own package, use npm pack, without links, with all files below one folder',
  })

export const unpackedOtherwise = (plugin: string, files: readonly string[]): SvcError =>
  tarballUnsafe(plugin, `unpacks to files that svc did not find when it read the tarball: ${files.join(', ')}`)

export const changedFiles = (plugin: string, files: readonly string[]): SvcError =>
  svcError('PLUGIN_CHANGED', `its files differ from the installed ones${files.length > 0 ? `: ${files.join(', ')}` : ''}`, {
    plugin,
    details: { files },
    hint: `Restore it (svc plugins update ${plugin}), or disable it (svc plugins disable ${plugin})`,
  })

export const changedDependencies = (): SvcError =>
  svcError('PLUGIN_CHANGED', 'the dependencies of the installed plugins differ from the installed ones', {
    where: 'node_modules',
    hint: 'Install the plugins again (svc plugins update), or restore a bundle',
  })

/** `svc plugins rollback` */
export const noFormer = (plugin: string): SvcError =>
  svcError('PLUGIN_FORMER_MISSING', 'has no former version on this machine', {
    plugin,
    hint: `Install the version by its name: svc plugins install ${plugin}@<version>`,
  })

export const formerChanged = (plugin: string): SvcError =>
  svcError('PLUGIN_CHANGED', 'the tarball of its former version was changed on this machine', {
    plugin,
    hint: `Install the version by its name: svc plugins install ${plugin}@<version>`,
  })

export const sameVersion = (plugin: string, version: string, files: readonly string[]): SvcError =>
  svcError('PLUGIN_VERSION_REUSED', `has the version ${version}, which is installed with other files: ${files.join(', ')}`, {
    plugin,
    details: { version, files },
    hint: `Increase the version. While you develop a plugin, use \`svc plugins link\`. To replace the installed version, run \`svc plugins uninstall ${plugin}\` first`,
  })

export const sourceGone = (plugin: string, kind: string, path: string): SvcError =>
  svcError('PLUGIN_SOURCE_GONE', `the ${kind} from which it was installed does not exist: ${path}`, {
    plugin,
    details: { path },
    hint: 'Install it from its new place: svc plugins install <path>',
  })

export const filesMissing = (plugin: string | undefined, what: string): SvcError =>
  svcError('PLUGIN_FILES_MISSING', what, {
    ...(plugin === undefined ? {} : { plugin }),
    hint:
      plugin === undefined
        ? 'Install the plugins again, or restore a bundle'
        : `Install it again, or uninstall it: svc plugins uninstall ${plugin}`,
  })

export const setBusy = (what: string, pid: number | undefined, since: string | undefined): SvcError =>
  svcError(
    'PLUGIN_SET_BUSY',
    `another command is changing the plugins: ${what}${pid === undefined ? '' : ` (process ${pid}, since ${since})`}`,
    {
      details: { what, pid: pid ?? null, since: since ?? null },
      hint: 'Try again when that command has ended',
    }
  )

export const setUnbuilt = (): SvcError =>
  svcError('PLUGIN_SET_UNBUILT', 'the new set of plugins is not built', {
    hint: 'Call build() exactly once, with one entry for each candidate, before you call commit()',
  })

export const lockInvalid = (why: string): SvcError =>
  svcError('LOCK_INVALID', why, {
    where: 'svc-plugins.lock',
    hint: 'Restore the file as svc wrote it, or remove it and install the plugins again',
  })

export const npmMissing = (cause: unknown): SvcError =>
  svcError('NPM_MISSING', 'cannot start npm', {
    cause,
    hint: 'Install npm (it comes with Node.js), and add it to PATH',
  })

export const notFound = (plugin: string, reason: 'package' | 'version', words: readonly string[]): SvcError =>
  svcError(
    'PLUGIN_NOT_FOUND',
    reason === 'package' ? 'the registry has no such package, or hides it' : 'the registry has no such version',
    {
      plugin,
      details: { reason, npm: words },
      hint:
        reason === 'package'
          ? 'Correct the name (svc plugins search finds plugins)'
          : `Correct the version: npm view ${nameIn(plugin)} versions`,
    }
  )

const nameIn = (spec: string) => spec.replace(/(?<=.)@.*$/, '')

export interface NpmFailure {
  /** Why, for a program. */
  readonly reason: string
  readonly says: string
  readonly hint: string
}

export const npmFailed = ({ reason, says, hint }: NpmFailure, words: readonly string[], plugin?: string): SvcError =>
  svcError('NPM_FAILED', says, { ...(plugin === undefined ? {} : { plugin }), details: { reason, npm: words }, hint })

/** Many company registries do not support search. */
export const searchFailed = (cause: SvcError): SvcError => {
  const [, status] = /^code E(\d{3})$/m.exec([cause.details.npm].flat().join('\n')) ?? []
  return svcError('PLUGIN_SEARCH_FAILED', `the registry does not answer a search${status === undefined ? '' : ` (${status})`}`, {
    cause,
    details: cause.details,
    hint: 'Install by name, which needs no search: svc plugins install <name>; or use another registry: npm_config_registry=<url> svc plugins search …',
  })
}

export const setEmpty = (): SvcError =>
  svcError('PLUGIN_SET_EMPTY', 'no plugin is installed', { hint: 'Install one first: svc plugins install <name>' })

export const linked = (plugin: string): SvcError =>
  svcError('PLUGIN_LINKED', 'is a link to a folder, and a bundle cannot contain links', {
    plugin,
    hint: `Install the folder instead (svc plugins install <folder>), or uninstall it: svc plugins uninstall ${plugin}`,
  })

export const leadsOut = (path: string): SvcError =>
  svcError(
    'PLUGIN_LEADS_OUT',
    `${path} is a link that leaves the folder of the installed plugins, so a bundle cannot contain its target`,
    {
      hint: 'Run `svc plugins update` to restore the files, or uninstall the plugin whose install script made the link',
    }
  )

export const bundleInvalid = (why: string, cause?: unknown): SvcError =>
  svcError('BUNDLE_INVALID', `the bundle is damaged: ${why}`, {
    cause,
    hint: 'Copy the file again from the machine on which `svc plugins pack` wrote it',
  })

export const archiveWords = whyOf

/** The newest revision in the store, for an error. */
interface NewestRevision {
  readonly revision: number
  readonly by: string
  readonly at: string
}

const newestText = ({ revision, by, at }: NewestRevision) => `revision ${revision}, written by ${by} at ${at}`

export const revisionConflict = (revision: number, newest: NewestRevision | undefined): SvcError =>
  svcError(
    'PLUGIN_SET_CONFLICT',
    newest === undefined
      ? 'the cluster has no plugins any more: its store was restored or replaced'
      : `another node has changed the plugins of the cluster at the same time: ${newestText(newest)}`,
    {
      details: { revision, newest: newest?.revision ?? 0 },
      hint: 'Wait until `svc nodes` shows the new revision on this node, then run the command again',
    }
  )

export const revisionBehind = (own: number, newest: NewestRevision): SvcError =>
  svcError(
    'PLUGIN_SET_BEHIND',
    `this node has ${own === 0 ? 'no revision' : `revision ${own}`} of the plugins, but the newest of its cluster is ${newestText(newest)}`,
    {
      details: { revision: own, newest: newest.revision },
      hint: 'Start the server of this node, or wait until it has taken over that revision (`svc nodes`), then run the command again',
    }
  )

export const revisionInvalid = (key: string, why: string): SvcError =>
  svcError('PLUGIN_REVISION_INVALID', `the revision ${key} of the plugins in the store is not valid: ${why}`, {
    details: { key },
    hint: 'Find out who has changed the collection plugin_revisions, and restore the database',
  })

export const revisionDamaged = ({ revision }: { readonly revision: number }, why: string): SvcError =>
  svcError('PLUGIN_SET_DAMAGED', `revision ${revision} of the plugins in the store is damaged: ${why}`, {
    details: { revision },
    hint: 'Find out who changed the database. To write a new revision, disable a plugin and enable it again on a node that has this revision',
  })

export const revisionTooLarge = (bytes: number, most: number): SvcError =>
  svcError(
    'PLUGIN_SET_TOO_LARGE',
    `the installed plugins are ${megabytes(bytes)} MiB packed; a cluster accepts at most ${megabytes(most)} MiB`,
    {
      details: { bytes, most },
      hint: 'Uninstall a plugin, or build the plugins into the image of each server: svc build',
    }
  )

const megabytes = (bytes: number) => Math.ceil(bytes / 1024 ** 2)

export const consentDiffers = (plugin: string): SvcError =>
  svcError('PLUGIN_CONSENT_DIFFERS', 'asks for other permissions than those that were accepted for the cluster', {
    plugin,
    hint: 'Do not use this revision. Install the plugin again on a node that you trust, and read its permissions',
  })

export const platformDiffers = (plugin: string, made: string, here: string): SvcError =>
  svcError('PLUGIN_PLATFORM_DIFFERS', `has native code for ${made}; this node is ${here}`, {
    plugin,
    details: { made, here },
    hint: 'Use nodes of one platform, or install a plugin without native code',
  })
