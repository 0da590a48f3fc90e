import { type SvcError, svcError } from '@svc/core'

export const nameInvalid = (name: string, why: string): SvcError =>
  svcError('NAME_INVALID', `"${name}" is not a valid plugin name: ${why}`, { hint: 'Choose another name' })

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

export const notPublished = (why: string): SvcError =>
  svcError('NOT_PUBLISHED', why, { hint: 'Fix the listed problems, then publish again' })
