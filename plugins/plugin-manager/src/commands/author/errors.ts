import { type SvcError, svcError } from '@svc/core'

export const nameInvalid = (name: string, why: string): SvcError =>
  svcError('NAME_INVALID', `"${name}" cannot be the name of a plugin: ${why}`, { hint: 'choose another name' })

export const folderTaken = (folder: string): SvcError =>
  svcError('FOLDER_TAKEN', `${folder} is there already and not empty`, {
    where: folder,
    hint: 'choose another name, or another folder with --dir',
  })

export const noPluginHere = (folder: string): SvcError =>
  svcError('PLUGIN_UNKNOWN', `there is no package.json in ${folder}`, {
    hint: 'name the folder of a plugin, or go there; `svc plugins new` makes one',
  })

export const packFailed = (what: string): SvcError =>
  svcError('PACK_FAILED', `npm cannot pack it: ${what}`, { hint: 'fix what npm says; `npm pack --dry-run` shows it again' })

export const notPublished = (why: string): SvcError =>
  svcError('NOT_PUBLISHED', why, { hint: 'fix what is listed, then publish again' })
