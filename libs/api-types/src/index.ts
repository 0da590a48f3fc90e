export { type CloudEvent, cloudEvent, EVENT_TYPE, TYPE_PATTERN, typeFilter, type WorkerEvent } from './cloud-events.ts'
export { API_CODES, type ApiCode, type Explained, explain, explained, toPublicError } from './explain.ts'
export {
  type AnswerBody,
  answerOf,
  type ChatBody,
  type ChatEvent,
  endEvent,
  errorEvent,
  eventOf,
  type PlainEvent,
  replyOf,
  turnOf,
} from './turn.ts'
export { messageRecord, partRecord } from './conversation.ts'
export { type ToolRecord, toolRecord } from './tool-record.ts'
export {
  eventRecord,
  infoRecord,
  problemRecord,
  type RunEventRecord,
  runReply,
  runRecord,
  versionRecord,
  statusRecord,
  statusUrl,
  stepRecord,
  type WaitingRecord,
} from './run.ts'
export { AnswerEvents, beganTwice, callCut, type NativeEvent, nativeText, settlesIn } from './answer-events.ts'
export {
  checkToolCount,
  fieldInvalid,
  type Fields,
  flagAt,
  integerAt,
  isFields,
  listAt,
  Losses,
  modelFailureOf,
  nameAt,
  numberAt,
  objectAt,
  textAt,
  toolsAt,
} from './fields.ts'
export {
  BOOLEAN,
  INTEGER,
  list,
  NUMBER,
  nullable,
  OBJECT,
  object,
  ok,
  STRING,
  TIME,
  text,
  withClosedQuery,
  words,
} from './schemas.ts'
export { etag, IF_MATCH_HINT, ifMatchOf } from './conditional.ts'
export { BASE64, IMAGE_TYPES, isImageData } from './images.ts'
