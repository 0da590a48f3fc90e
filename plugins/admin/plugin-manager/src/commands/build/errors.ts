import { type SvcError, svcError } from '@svc/core'

export const folderTaken = (folder: string): SvcError =>
  svcError('BUILD_FOLDER_TAKEN', `the folder ${folder} is not empty`, { hint: 'Choose a new folder, or empty this one' })

export const dependencyMissing = (name: string, by: string): SvcError =>
  svcError('BUILD_INCOMPLETE', `${name}, which ${by} needs, is not installed beside svc`, {
    hint: 'Install svc with npm, which puts all packages into one node_modules, and build from there',
  })

export const pluginLoose = (plugin: string): SvcError =>
  svcError('BUILD_PLUGIN_LOOSE', 'is a local folder, which a build cannot contain', {
    plugin,
    hint: 'Install it first (svc plugins install <folder>), and remove it from "plugins"',
  })

export const pluginLinked = (plugin: string): SvcError =>
  svcError('PLUGIN_LINKED', 'is a link to a folder, which a build cannot contain', {
    plugin,
    hint: 'Install the folder instead: svc plugins install <folder>',
  })

export const configScattered = (file: string, needs: string): SvcError =>
  svcError('BUILD_CONFIG_SCATTERED', `${file} imports ${needs}, which lies outside its folder`, {
    where: file,
    hint: 'Move it below the folder of the configuration',
  })

export const configTwice = (files: readonly string[]): SvcError =>
  svcError('BUILD_CONFIG_TWICE', `the configuration comes from ${files.join(' and ')}`, {
    hint: 'A build has one configuration file: merge both, pass the result with --config, and keep none in the svc home (SVC_HOME)',
  })
