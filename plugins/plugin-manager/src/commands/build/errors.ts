import { type SvcError, svcError } from '@svc/core'

export const folderTaken = (folder: string): SvcError =>
  svcError('BUILD_FOLDER_TAKEN', `${folder} is there already and not empty`, { hint: 'name a new folder, or empty it' })

export const dependencyMissing = (name: string, by: string): SvcError =>
  svcError('BUILD_INCOMPLETE', `${name}, which ${by} needs, is not installed beside svc`, {
    hint: 'install svc with npm, which puts all packages into one node_modules, and build from there',
  })

export const pluginLoose = (plugin: string): SvcError =>
  svcError('BUILD_PLUGIN_LOOSE', 'lies in a folder of its own, which the build could not keep as it is', {
    plugin,
    hint: 'install it first (svc plugins install <folder>), and take it out of "plugins"',
  })

export const pluginLinked = (plugin: string): SvcError =>
  svcError('PLUGIN_LINKED', 'is a link to a folder, which no build can hold', {
    plugin,
    hint: 'install the folder instead: svc plugins install <folder>',
  })

export const configScattered = (file: string, needs: string): SvcError =>
  svcError('BUILD_CONFIG_SCATTERED', `${file} imports ${needs}, which lies outside its folder`, {
    where: file,
    hint: 'move it below the folder of the configuration',
  })

export const configTwice = (files: readonly string[]): SvcError =>
  svcError('BUILD_CONFIG_TWICE', `the configuration comes from ${files.join(' and ')}`, {
    hint: 'a build has one file: write one that holds both, and name it with --config; and leave the home without one (SVC_HOME)',
  })
