import type { SvcError } from '@svc/core'
import { pathError } from '@svc/safe-fs'

export const isBinary = (path: string, size: number): SvcError =>
  pathError('FILE_BINARY', path, `is a binary file of ${size} bytes; only text files can be read or edited`)
export const isNotUtf8 = (path: string): SvcError =>
  pathError('FILE_BINARY', path, 'is not valid UTF-8, so an edit would change other bytes')
export const tooLarge = (path: string, size: number, most: number): SvcError =>
  pathError('FILE_TOO_LARGE', path, `has or would have ${size} bytes; a call writes at most ${most}`)
export const changedMeanwhile = (path: string): SvcError =>
  pathError('FILE_CHANGED', path, 'was changed by another program during the edit; read it again, then edit it')
export const noMatch = (path: string, near: string): SvcError =>
  pathError('EDIT_NO_MATCH', path, `does not contain old_text exactly, including blanks and line ends.${near}`)
export const manyMatches = (path: string, count: number, lines: string): SvcError =>
  pathError(
    'EDIT_MANY_MATCHES',
    path,
    `contains old_text ${count} times (${lines}); add surrounding lines to make it unique, or set all to true`
  )
export const sameText = (path: string): SvcError =>
  pathError('EDIT_NO_CHANGE', path, 'would not change: old_text and new_text are equal')
export const halfCharacter = (path: string): SvcError =>
  pathError(
    'TEXT_INVALID',
    path,
    'cannot be edited: old_text or new_text contains an unpaired surrogate, which is half a character'
  )
export const tooMany = (path: string, most: number): SvcError =>
  pathError('PATH_TOO_MANY', path, `contains more than ${most} entries; delete its contents in parts`)
export const notEmpty = (path: string): SvcError =>
  pathError('PATH_NOT_EMPTY', path, 'is a directory that is not empty; set recursive to true to delete its contents')
export const intoItself = (path: string): SvcError => pathError('PATH_INVALID', path, 'cannot be moved into itself')
export const elsewhere = (path: string): SvcError =>
  pathError('PATH_UNUSABLE', path, 'is on another file system; write the file there and delete it here')
