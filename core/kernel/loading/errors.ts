import { codeOf, messageOf, svcError } from '../src/errors.ts'

export const noSuchPath = (name: string, path: string) =>
  svcError('PLUGIN_UNKNOWN', `the file or folder ${path} does not exist`, {
    plugin: name,
    hint: 'Fix the path. It is relative to the file that names it',
  })

export const unknownPlugin = (name: string, from: readonly string[], cause?: unknown) =>
  svcError('PLUGIN_UNKNOWN', `the package "${name}" cannot be found from ${from.join(', ') || 'here'}`, {
    plugin: name,
    cause,
    hint: `Install it (npm install ${name}), fix the name, or remove it from "plugins"`,
  })

export const manifestInvalid = (plugin: string, message: string, where: string, hint: string) =>
  svcError('MANIFEST_INVALID', message, { plugin, where, hint })

export const manifestNewer = (plugin: string, api: number, ours: number, where: string) =>
  svcError('MANIFEST_NEWER', `requires plugin API ${api}, but this host has API ${ours}`, {
    plugin,
    where,
    details: { api, host: ours },
    hint: `Update svc, or install a version of ${plugin} for API ${ours}`,
  })

export const manifestOlder = (plugin: string, api: number, oldest: number, where: string) =>
  svcError('MANIFEST_OLDER', `requires plugin API ${api}, but this host runs plugins of API ${oldest} and newer`, {
    plugin,
    where,
    details: { api, oldest },
    hint: `Install a newer version of ${plugin}, or use an older version of svc`,
  })

export const importFailed = (plugin: string, cause: unknown, where?: string) =>
  svcError('PLUGIN_IMPORT_FAILED', `failed to import: ${messageOf(cause)}`, {
    plugin,
    cause,
    details: { cause: codeOf(cause) ?? (cause as Error)?.name ?? null },
    ...(where === undefined ? {} : { where }),
    hint: importHint(cause),
  })

export const noPlugin = (plugin: string) =>
  svcError('PLUGIN_IMPORT_FAILED', 'its module has no plugin as default export', {
    plugin,
    hint: 'Write export default definePlugin({ … })',
  })

export const runtimeModuleInvalid = (plugin: string, why: string) =>
  svcError('PLUGIN_IMPORT_FAILED', `its module ${why}`, {
    plugin,
    hint: 'Name one self-contained JavaScript file of the package in "main" or "exports"',
  })

export const sectionTaken = (plugin: string, section: string, by: string) =>
  svcError('SECTION_TAKEN', `claims the section "${section}", which belongs to ${by}`, {
    plugin,
    details: { section, by },
    hint: 'Choose another section in the manifest',
  })

function importHint(cause: unknown): string {
  const message = messageOf(cause)
  if (/import statement outside a module/.test(message))
    return 'Set "type": "module" in the package.json of the folder, or rename the file to .mts'
  if (codeOf(cause) === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX')
    return 'Remove enums, namespaces and parameter properties: Node strips types but does not compile'
  if (codeOf(cause) === 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING')
    return 'Build the package and name the build in "exports": a package in node_modules must be JavaScript'
  if (/does not provide an export named/.test(message))
    return 'Fix the import: write "import type" for types. Host and Events come from @svc/core, other contracts from @svc/core/contracts'
  if (codeOf(cause) === 'ERR_MODULE_NOT_FOUND') return 'Install the missing package, build it, or fix the path'
  return 'Fix the error in the module'
}

export const noIsolation = (plugin: string, why: string) =>
  svcError('NOT_ISOLABLE', `cannot run in its own process: ${why}`, {
    plugin,
    hint: `If you trust its code, write { use: "${plugin}", isolation: "in-process" } in "plugins". Otherwise remove it`,
  })

export const pluginTwice = (plugin: string) =>
  svcError('PLUGIN_TWICE', 'is listed twice', { plugin, hint: 'Keep one of its entries in "plugins"' })
