import { messageOf, type SvcError, svcError } from '@svc/core'

/** What npm or an archive says, for `details`: where it stands on this machine and who asks is nobody's business. */
export const plainWords = (text: string): string =>
  text
    .replace(/\b(https?:\/\/)[^\s/@]*@/g, '$1')
    .replace(/((?:_authToken|_auth|_password|token)\s*[=:]\s*)\S+/gi, '$1…')
    .replace(/(?<![\w:/.])(?:file:\/*)?\/(?:[^\s/'"]+\/)+([^\s/'"]*)/g, '…/$1')

const whyOf = (cause: unknown) => plainWords(messageOf(cause))

export const specInvalid = (spec: string, why: string): SvcError =>
  svcError('PLUGIN_SPEC_INVALID', `${JSON.stringify(plainWords(spec))} names no plugin: ${why}`, {
    hint: 'write name, name@range, a folder (./weather), or a tarball (./weather-1.0.0.tgz)',
  })

export const notInstalled = (plugin: string, near: string | undefined): SvcError =>
  svcError('PLUGIN_NOT_INSTALLED', 'is not installed', {
    plugin,
    hint: near === undefined ? 'svc plugins list shows what is' : `did you mean "${near}"?`,
  })

export const notAPlugin = (plugin: string, why: string): SvcError =>
  svcError('PLUGIN_NOT_A_PLUGIN', why, {
    plugin,
    hint: 'install another package; of your own: add "svc": { "api": 1, "kind": "tool" } to its package.json (docs/plugins.md)',
  })

export const dependencyStray = (plugin: string | undefined, what: string): SvcError =>
  svcError('PLUGIN_DEPENDENCY_STRAY', plainWords(what), {
    ...(plugin === undefined ? {} : { plugin }),
    hint: 'do not install it; of your own: let it depend on packages of the registry, by their names',
  })

export const nameOurs = (plugin: string): SvcError =>
  svcError('PLUGIN_NAME_OURS', 'has a name that only what comes with svc may have', {
    plugin,
    hint: 'rename the package: names that begin with @svc/ are taken',
  })

export const nameDiffers = (asked: string, plugin: string): SvcError =>
  svcError('PLUGIN_NAME_DIFFERS', `the registry has it as ${asked}, its package.json says ${plugin}`, {
    plugin: asked,
    details: { asked, name: plugin },
    hint: 'do not install it, and tell the registry: a package goes by one name',
  })

export const tarballUnsafe = (plugin: string, why: string, cause?: unknown): SvcError =>
  svcError('PLUGIN_TARBALL_UNSAFE', `its tarball ${why}`, {
    plugin,
    cause,
    hint: 'do not install it; of your own: make it with npm pack, without links, of files below one folder',
  })

export const unpackedOtherwise = (plugin: string, files: readonly string[]): SvcError =>
  tarballUnsafe(plugin, `was unpacked as other files than svc found in it: ${files.join(', ')}`)

export const changedFiles = (plugin: string, files: readonly string[]): SvcError =>
  svcError('PLUGIN_CHANGED', `its files are not those that were installed${files.length > 0 ? `: ${files.join(', ')}` : ''}`, {
    plugin,
    details: { files },
    hint: `put it together anew: svc plugins update ${plugin}; or disable it: svc plugins disable ${plugin}`,
  })

export const changedDependencies = (): SvcError =>
  svcError('PLUGIN_CHANGED', 'what the installed plugins depend on is not what was installed', {
    where: 'node_modules',
    hint: 'install the plugins again (svc plugins update), or restore a bundle',
  })

export const filesMissing = (plugin: string | undefined, what: string): SvcError =>
  svcError('PLUGIN_FILES_MISSING', what, {
    ...(plugin === undefined ? {} : { plugin }),
    hint:
      plugin === undefined
        ? 'install the plugins again, or restore a bundle'
        : `install it again, or take it out: svc plugins uninstall ${plugin}`,
  })

export const setBusy = (what: string, pid: number | undefined, since: string | undefined): SvcError =>
  svcError(
    'PLUGIN_SET_BUSY',
    `the plugins are being changed: ${what}${pid === undefined ? '' : ` (process ${pid}, since ${since})`}`,
    {
      details: { what, pid: pid ?? null, since: since ?? null },
      hint: 'try again when that has ended',
    }
  )

export const setUnbuilt = (): SvcError =>
  svcError('PLUGIN_SET_UNBUILT', 'the new set is not built', {
    hint: 'call build() before commit(), once, with an entry for each candidate',
  })

export const lockInvalid = (why: string): SvcError =>
  svcError('LOCK_INVALID', why, {
    where: 'svc-plugins.lock',
    hint: 'put the file back as svc wrote it; or remove it, and install the plugins again',
  })

export const npmMissing = (cause: unknown): SvcError =>
  svcError('NPM_MISSING', 'npm could not be started', {
    cause,
    hint: 'install npm (it comes with Node.js), and let PATH lead to it',
  })

export const notFound = (plugin: string, reason: 'package' | 'version', words: readonly string[]): SvcError =>
  svcError(
    'PLUGIN_NOT_FOUND',
    reason === 'package' ? 'the registry has no such package, or does not show it' : 'the registry has no such version',
    {
      plugin,
      details: { reason, npm: words },
      hint:
        reason === 'package'
          ? 'fix the name (svc plugins search finds plugins)'
          : `fix the version: npm view ${nameIn(plugin)} versions`,
    }
  )

const nameIn = (spec: string) => spec.replace(/(?<=.)@.*$/, '')

export interface NpmFault {
  /** Why, for a program. */
  readonly reason: string
  readonly says: string
  readonly hint: string
}

export const npmFailed = ({ reason, says, hint }: NpmFault, words: readonly string[], plugin?: string): SvcError =>
  svcError('NPM_FAILED', says, { ...(plugin === undefined ? {} : { plugin }), details: { reason, npm: words }, hint })

/** Many registries of companies keep packages and search none. */
export const searchFailed = (cause: SvcError): SvcError => {
  const [, status] = /^code E(\d{3})$/m.exec([cause.details.npm].flat().join('\n')) ?? []
  return svcError('PLUGIN_SEARCH_FAILED', `the registry does not answer a search${status === undefined ? '' : ` (${status})`}`, {
    cause,
    details: cause.details,
    hint: 'install by name, which needs no search: svc plugins install <name>; or ask another registry: npm_config_registry=<url> svc plugins search …',
  })
}

export const setEmpty = (): SvcError =>
  svcError('PLUGIN_SET_EMPTY', 'no plugin is installed', { hint: 'install one first: svc plugins install <name>' })

export const linked = (plugin: string): SvcError =>
  svcError('PLUGIN_LINKED', 'is a link to a folder, which no bundle can hold', {
    plugin,
    hint: `install the folder instead (svc plugins install <folder>), or take it out: svc plugins uninstall ${plugin}`,
  })

export const leadsOut = (path: string): SvcError =>
  svcError('PLUGIN_LEADS_OUT', `${path} is a link that leads out of what is installed: no other machine has what it leads to`, {
    hint: 'svc plugins update puts the files together anew; or take the plugin out, whose install script made the link',
  })

export const bundleInvalid = (why: string, cause?: unknown): SvcError =>
  svcError('BUNDLE_INVALID', `it is no whole bundle: ${why}`, {
    cause,
    hint: 'copy the file again from where svc plugins pack wrote it',
  })

export const archiveWords = whyOf
