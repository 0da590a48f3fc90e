import { nearest, shownPath, type SvcError, svcError } from '@svc/core'

/** Without a terminal, svc cannot ask about permissions. */
export const consentMissing = (verb: string): SvcError =>
  svcError('CONSENT_MISSING', `cannot ask for consent to ${verb}: the standard input is not a terminal`, {
    hint: 'Read the permissions above, then pass --yes to accept them',
  })

/** A server listens for commands only once its first worker is ready, and a busy one answers late. */
export const serverSilent = (): SvcError =>
  svcError('SERVER_SILENT', 'the supervisor of this server does not answer', {
    hint: 'Wait: svc tries again. If it lasts, restart the server',
  })

/** Found before the question; a start would report the same setting as required. */
export const settingsMissing = (plugin: string, settings: readonly string[], file?: string): SvcError =>
  svcError('SETTINGS_MISSING', `needs ${settings.join(', ')}, which the configuration does not have`, {
    plugin,
    details: { settings },
    hint: `Write them into ${file === undefined ? 'svc.config.*' : shownPath(file)}, or name another configuration with --config, and run this command again`,
  })

interface ServerOfSettings {
  readonly url: string
  /** Where the server was started. */
  readonly folder: string
  /** The configuration file that it reads, if there is one. */
  readonly file: string | undefined
  /** A file that has the settings, but that the server does not read. */
  readonly unread?: string
}

/** A running server loads the change, with its own configuration. */
export const settingsMissingOnServer = (
  plugin: string,
  settings: readonly string[],
  { url, folder, file, unread }: ServerOfSettings
): SvcError =>
  svcError(
    'SETTINGS_MISSING',
    `needs ${settings.join(', ')}, which the configuration of the server at ${url} does not have${unread === undefined ? '' : `: the server does not read ${shownPath(unread)}, which has ${settings.length === 1 ? 'it' : 'them'}`}`,
    {
      plugin,
      details: { settings, server: url, file: file ?? null },
      hint: `Write them into ${file === undefined ? `svc.config.yaml in ${shownPath(folder)}, where the server was started` : `${shownPath(file)}, which the server reads`}, and run this command again`,
    }
  )

export const needsTrust = (plugin: string, why: string): SvcError =>
  svcError('PLUGIN_NEEDS_TRUST', `would run in the process of svc, without isolation: ${why}`, {
    plugin,
    hint: 'Read its code, and pass --trust if you trust it as much as svc itself',
  })

export const isolationUnfit = (plugin: string, isolation: string, why: string): SvcError =>
  svcError('PLUGIN_ISOLATION_UNFIT', `cannot run with --isolation ${isolation}: ${why}`, {
    plugin,
    hint: 'Omit --isolation: svc then chooses a mode that the plugin supports',
  })

export const notInstalled = (plugin: string, installed: readonly string[]): SvcError => {
  const near = nearest(plugin, installed) ?? endingWith(plugin, installed)
  return svcError('PLUGIN_NOT_INSTALLED', 'is not installed', {
    plugin,
    hint:
      near === undefined
        ? 'Run `svc plugins list` to see the installed plugins. To disable a configured plugin, write plugins: [{ use: …, enabled: false }]'
        : `did you mean "${near}"?`,
  })
}

/** `dice` for `svc-plugin-example-dice`: users omit the common prefix. Only an unambiguous match counts. */
function endingWith(plugin: string, installed: readonly string[]): string | undefined {
  const [first, ...others] = installed.filter(name => name.endsWith(`-${plugin}`) || name.endsWith(`/${plugin}`))
  return others.length === 0 ? first : undefined
}

/** The same error as at a start. */
export const apiKeyMissing = (plugin: string, variable: string): SvcError =>
  svcError('API_KEY_MISSING', `authentication is on, but the environment variable ${variable} is unset or empty`, {
    plugin,
    where: 'server.auth.api_key_env',
    details: { variable },
    hint: `Set ${variable} to the key, or set server.auth.enabled to false`,
  })

/** The same error as at a start. */
export const schemeMissing = (): SvcError =>
  svcError('AUTHENTICATION_WITHOUT_SCHEME', 'authentication is on, but no plugin adds an authentication scheme', {
    where: 'server.auth.enabled',
    hint: 'Add a plugin that provides a scheme to "plugins", or set server.auth.enabled to false',
  })

/** The same error as at a start. */
export const nameTaken = (plugin: string, slot: string, name: string, by: string): SvcError =>
  svcError('NAME_TAKEN', `adds "${name}" to ${slot}, where ${by} has added that name already`, {
    plugin,
    details: { slot, name, by },
    hint: `Disable one of them (svc plugins disable, or enabled: false in "plugins"), or install another plugin`,
  })

export const severalWithBundle = (): SvcError =>
  svcError('COMMAND_LINE_INVALID', 'a bundle replaces all installed plugins, so it cannot be combined with others', {
    hint: 'Install the bundle first, then the other plugins',
  })

export const bundleOrName = (spec: string): SvcError =>
  svcError('COMMAND_LINE_INVALID', `"${spec}" is the name of a package, and also a bundle in this folder`, {
    hint: `Write ./${spec} to restore the bundle, or run the command in another folder to install the package`,
  })

export const nameInvalid = (name: string, why: string): SvcError =>
  svcError('NAME_INVALID', `"${name}" is not a valid plugin name: ${why}`, { hint: 'Choose another name' })

export const kindsSeparate = (kind: string): SvcError =>
  svcError('KINDS_SEPARATE', `a package of kind ${kind} cannot have further kinds`, {
    hint: `Create two packages: one with --kind ${kind}, one with the other kinds`,
  })

export const folderTaken = (folder: string): SvcError =>
  svcError('FOLDER_TAKEN', `the folder ${folder} is not empty`, {
    where: folder,
    hint: 'Choose another name, or another folder with --dir',
  })

export const noPluginHere = (folder: string): SvcError =>
  svcError('PLUGIN_UNKNOWN', `there is no package.json in ${folder}`, {
    hint: 'Pass the folder of a plugin; `svc plugins new` creates one',
  })

export const packFailed = (what: string): SvcError =>
  svcError('PACK_FAILED', `npm cannot pack the plugin: ${what}`, {
    hint: 'Fix the problem that npm reports; `npm pack --dry-run` shows it again',
  })

export const notPublished = (why: string, hint = 'Fix the listed problems, then publish again'): SvcError =>
  svcError('NOT_PUBLISHED', why, { hint })

export const isolationMissing = (plugin: string, why: string, hint: string): SvcError =>
  svcError('ISOLATION_UNAVAILABLE', `cannot run in a process of its own: ${why}`, { plugin, hint })

export const buildFolderTaken = (folder: string): SvcError =>
  svcError('BUILD_FOLDER_TAKEN', `the folder ${folder} is not empty`, { hint: 'Choose a new folder, or empty this one' })

export const dependencyMissing = (name: string, by: string): SvcError =>
  svcError('BUILD_INCOMPLETE', `${name}, which ${by} needs, is not installed beside svc`, {
    hint: 'Install svc with npm, which puts all packages into one node_modules, and build from there',
  })

export const pluginLoose = (plugin: string): SvcError =>
  svcError('BUILD_PLUGIN_LOOSE', 'is a local folder, and a build contains only installed plugins', {
    plugin,
    hint: 'Install it first (svc plugins install <folder>), and remove it from "plugins"',
  })

export const pluginLinked = (plugin: string): SvcError =>
  svcError('PLUGIN_LINKED', 'is a link to a folder, and a build cannot contain links', {
    plugin,
    hint: 'Install the folder instead: svc plugins install <folder>',
  })

export const configScattered = (file: string, needs: string): SvcError =>
  svcError('BUILD_CONFIG_SCATTERED', `${file} imports ${needs}, which is outside the folder of the configuration`, {
    where: file,
    hint: 'Move the imported file into the folder of the configuration',
  })

export const configTwice = (files: readonly string[]): SvcError =>
  svcError('BUILD_CONFIG_TWICE', `the configuration comes from ${files.join(' and ')}`, {
    hint: 'A build has one configuration file: merge both, pass the result with --config, and keep none in the svc home (SVC_HOME)',
  })
