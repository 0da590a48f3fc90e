import { codeOf, messageOf, svcError } from '../src/svc-error.ts'

export const noSuchPath = (name: string, path: string) =>
  svcError('PLUGIN_UNKNOWN', `there is no file or folder ${path}`, {
    plugin: name,
    hint: 'fix the path: it starts at the file that names it',
  })

export const unknownPlugin = (name: string, from: readonly string[], cause?: unknown) =>
  svcError('PLUGIN_UNKNOWN', `no package "${name}" can be found from ${from.join(', ') || 'here'}`, {
    plugin: name,
    cause,
    hint: `install it (npm install ${name}), fix the name, or take it out of "plugins"`,
  })

export const manifestInvalid = (plugin: string, message: string, where: string, hint: string) =>
  svcError('MANIFEST_INVALID', message, { plugin, where, hint })

export const manifestNewer = (plugin: string, api: number, ours: number, where: string) =>
  svcError('MANIFEST_NEWER', `was written for plugin api ${api}, this host speaks api ${ours}`, {
    plugin,
    where,
    details: { api, host: ours },
    hint: `update svc, or install a version of ${plugin} for api ${ours}`,
  })

export const manifestOlder = (plugin: string, api: number, oldest: number, where: string) =>
  svcError('MANIFEST_OLDER', `was written for plugin api ${api}, this host runs plugins of api ${oldest} and newer`, {
    plugin,
    where,
    details: { api, oldest },
    hint: `install a newer version of ${plugin}, or stay with the svc that it was written for`,
  })

export const importFailed = (plugin: string, cause: unknown, where?: string) =>
  svcError('PLUGIN_IMPORT_FAILED', `could not be imported: ${messageOf(cause)}`, {
    plugin,
    cause,
    details: { cause: codeOf(cause) ?? (cause as Error)?.name ?? null },
    ...(where === undefined ? {} : { where }),
    hint: importHint(cause),
  })

export const noPlugin = (plugin: string) =>
  svcError('PLUGIN_IMPORT_FAILED', 'its module loads, but exports no plugin as default', {
    plugin,
    hint: 'export default definePlugin({ … })',
  })

export const runtimeModuleInvalid = (plugin: string, why: string) =>
  svcError('PLUGIN_IMPORT_FAILED', `its module ${why}`, {
    plugin,
    hint: 'let "main" or "exports" name one JavaScript file of the package, with all that it needs in it',
  })

export const sectionTaken = (plugin: string, section: string, by: string) =>
  svcError('SECTION_TAKEN', `names the section "${section}", which is of ${by}`, {
    plugin,
    details: { section, by },
    hint: 'let its manifest name a section of its own',
  })

function importHint(cause: unknown): string {
  const message = messageOf(cause)
  if (/import statement outside a module/.test(message))
    return 'set "type": "module" in the package.json beside it, or name the file .mts'
  if (codeOf(cause) === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX')
    return 'Node strips types and nothing more: no enum, no namespace, no parameter property'
  if (codeOf(cause) === 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING')
    return 'a package in node_modules must be JavaScript: build it, and let "exports" name the build'
  if (codeOf(cause) === 'ERR_MODULE_NOT_FOUND') return 'install what it imports, or build it, or fix the path'
  return 'its module must load: the message says what stopped it'
}

export const noIsolation = (plugin: string, why: string) =>
  svcError('NOT_ISOLABLE', `is to run in a process of its own, and cannot: ${why}`, {
    plugin,
    hint: `say { use: "${plugin}", isolation: "in-process" } in "plugins" if you trust its code, or take it out`,
  })

export const pluginTwice = (plugin: string) =>
  svcError('PLUGIN_TWICE', 'is listed twice', { plugin, hint: 'keep one entry of it in "plugins"' })
