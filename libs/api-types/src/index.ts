export { type CloudEvent, cloudEvent, EVENT_TYPE, TYPE_PATTERN, typeFilter, type WorkerEvent } from './cloud-events.ts'
export { API_CODES, type ApiCode, type Explained, explain, explained, toPublicError } from './explain.ts'
export { type ChatEvent, endEvent, errorEvent, eventOf, type PlainEvent } from './events.ts'
export { type AnswerBody, answerOf, type ChatBody, replyOf, turnOf } from './turn.ts'
export { type ToolRecord, toolRecord } from './tool-record.ts'
export {
  eventRecord,
  infoRecord,
  problemRecord,
  type RunEventRecord,
  runReply,
  runRecord,
  statusRecord,
  statusUrl,
  stepRecord,
  type WaitingRecord,
} from './run.ts'
