import type { SvcError } from '@svc/core'
import { pathError } from '@svc/safe-fs'

export const isBinary = (path: string, size: number): SvcError =>
  pathError('FILE_BINARY', path, `is a binary file of ${size} bytes: only text can be read or edited`)
export const isNotUtf8 = (path: string): SvcError =>
  pathError('FILE_BINARY', path, 'is not in UTF-8: to edit it here would change bytes that were not meant')
export const tooLarge = (path: string, size: number, most: number): SvcError =>
  pathError('FILE_TOO_LARGE', path, `has or would have ${size} bytes; ${most} are the most that one call writes`)
export const changedMeanwhile = (path: string): SvcError =>
  pathError('FILE_CHANGED', path, 'was changed by somebody else meanwhile: read it again, then edit')
export const noMatch = (path: string, near: string): SvcError =>
  pathError('EDIT_NO_MATCH', path, `does not hold old_text as it is written, blanks and line ends included.${near}`)
export const manyMatches = (path: string, count: number, lines: string): SvcError =>
  pathError(
    'EDIT_MANY_MATCHES',
    path,
    `holds old_text ${count} times (${lines}): add lines around it that make it the only one, or set all to true`
  )
export const sameText = (path: string): SvcError =>
  pathError('EDIT_NO_CHANGE', path, 'would stay as it is: old_text and new_text are the same')
export const halfCharacter = (path: string): SvcError =>
  pathError(
    'TEXT_INVALID',
    path,
    'cannot be edited so: old_text or new_text holds half of a character (a surrogate without its other half)'
  )
export const tooMany = (path: string, most: number): SvcError =>
  pathError('PATH_TOO_MANY', path, `holds more than ${most} things: delete what is in it part by part`)
export const notEmpty = (path: string): SvcError =>
  pathError('PATH_NOT_EMPTY', path, 'is a directory that is not empty: set recursive to true to delete all that is in it')
export const intoItself = (path: string): SvcError => pathError('PATH_INVALID', path, 'cannot be moved into itself')
export const elsewhere = (path: string): SvcError =>
  pathError('PATH_UNUSABLE', path, 'lies on another file system: write the file there and delete it here')
