import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda'
import { createReceiver } from 'hookline'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver.on('track', async (message) => console.log('track', message))

export async function handler({ Records }: SQSEvent): Promise<SQSBatchResponse> {
  const failed = await Promise.all(Records.map(async (record) => ((await hasFailed(record)) ? [record] : [])))
  return report(failed.flat())
}

/** For a FIFO queue: in order, and no further than the first failure. */
export async function fifo({ Records }: SQSEvent): Promise<SQSBatchResponse> {
  for (const [index, record] of Records.entries()) {
    if (await hasFailed(record)) return report(Records.slice(index))
  }
  return report([])
}

/** Whether to receive it again. A 4xx is final: the message is forged or invalid. */
async function hasFailed({ body, messageAttributes }: SQSRecord): Promise<boolean> {
  const headers = { 'x-signature': messageAttributes['x-signature']?.stringValue }
  const { status } = await receiver.receive(Buffer.from(body), headers)
  return status >= 500
}

function report(records: SQSRecord[]): SQSBatchResponse {
  return { batchItemFailures: records.map(({ messageId }) => ({ itemIdentifier: messageId })) }
}
